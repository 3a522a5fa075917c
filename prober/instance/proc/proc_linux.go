// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ErrGone says that the process no longer exists.
var ErrGone = errors.New("no such process")

// procBuffer bounds how much of a file is read, and therefore how much of a command line is
// matched.
const procBuffer = 64 << 10

// ticks is the number of clock ticks in a second as the kernel reports them: 100 on every
// architecture that Go supports, whatever the kernel's own timer does.
const ticks = 100

// FS reads processes from a proc file system. It is not safe for concurrent use.
type FS struct {
	Root string
	buf  []byte
}

// Stat has the used fields of /proc/PID/stat.
type Stat struct {
	Process
	Name   string
	Parent int
	Ended  bool // a zombie without running threads
}

// ReadFile reads the beginning of a file into buf, and does not wait if the file is a pipe.
func ReadFile(path string, buf []byte, check func(fd int) error) ([]byte, error) {
	var fd int
	err := again(func() (err error) {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }() // it was only read
	if check != nil {
		if err := check(fd); err != nil {
			return nil, err
		}
	}
	n := 0
	for n < len(buf) {
		var m int
		err := again(func() (err error) { m, err = unix.Read(fd, buf[n:]); return err })
		if err != nil {
			return nil, err
		}
		if m == 0 {
			break
		}
		n += m
	}
	return buf[:n], nil
}

// again repeats f while signals interrupt it.
func again(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// of reads a file of a process. The bytes are valid until the next call.
func (p *FS) of(pid int, name string) ([]byte, error) {
	if p.buf == nil {
		p.buf = make([]byte, procBuffer)
	}
	path := p.path(pid, name)
	text, err := ReadFile(path, p.buf, nil)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ESRCH):
		return nil, ErrGone
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return text, nil
}

func (p *FS) path(pid int, name string) string {
	return p.Root + "/" + strconv.Itoa(pid) + "/" + name
}

// Stat reads /proc/PID/stat. The process chooses the name in that file, brackets and blanks
// included, so fields count from the last bracket.
func (p *FS) Stat(pid int) (Stat, error) {
	text, err := p.of(pid, "stat")
	if err != nil {
		return Stat{}, err
	}
	begin, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if begin < 0 || end < begin {
		return Stat{}, fmt.Errorf("read %s: no name in it", p.path(pid, "stat"))
	}
	// The state is the third field, counted from 1.
	const first = 3
	fields := bytes.Fields(text[end+1:])
	if len(fields) < 20 {
		return Stat{}, fmt.Errorf("read %s: %d fields after the name, not 20", p.path(pid, "stat"), len(fields))
	}
	parent, err1 := strconv.Atoi(string(fields[4-first]))
	threads, err2 := strconv.Atoi(string(fields[20-first]))
	start, err3 := strconv.ParseUint(string(fields[22-first]), 10, 64)
	if err := errors.Join(err1, err2, err3); err != nil {
		return Stat{}, fmt.Errorf("read %s: %w", p.path(pid, "stat"), err)
	}
	state := fields[0][0]
	return Stat{
		Process: Process{PID: pid, Start: start}, Name: string(text[begin+1 : end]), Parent: parent,
		Ended: (state == 'Z' || state == 'X' || state == 'x') && threads <= 1,
	}, nil
}

// Runs reports whether who still runs: its PID still belongs to the same process.
func (p *FS) Runs(who Process) (bool, error) {
	is, err := p.Stat(who.PID)
	if errors.Is(err, ErrGone) {
		return false, nil
	}
	return err == nil && is.Process == who && !is.Ended, err
}

// Command returns the command line with blanks between its words; "" for a kernel thread or a
// zombie.
func (p *FS) Command(pid int) (string, error) {
	text, err := p.of(pid, "cmdline")
	if err != nil {
		return "", err
	}
	for i, b := range text {
		if b == 0 {
			text[i] = ' '
		}
	}
	return string(bytes.TrimRight(text, " ")), nil
}

// IsThread reports whether pid is the ID of a thread other than the main thread.
func (p *FS) IsThread(pid int) (bool, error) {
	text, err := p.of(pid, "status")
	if err != nil {
		return false, err
	}
	for line := range bytes.Lines(text) {
		if group, ok := bytes.CutPrefix(line, []byte("Tgid:")); ok {
			return string(bytes.TrimSpace(group)) != strconv.Itoa(pid), nil
		}
	}
	return false, fmt.Errorf("read %s: no Tgid in it", p.path(pid, "status"))
}

// All lists the processes without their threads.
func (p *FS) All() ([]int, error) {
	var pids []int
	err := names(p.Root, func(_ int, name string) bool {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	return pids, nil
}

// VisitSockets calls visit with the inode of each socket that a process has open, until visit
// returns false.
func (p *FS) VisitSockets(pid int, visit func(inode uint64) bool) error {
	var link [64]byte
	err := names(p.path(pid, "fd"), func(dir int, name string) bool {
		n, err := unix.Readlinkat(dir, name, link[:])
		if err != nil {
			return true // closed meanwhile
		}
		number, ok := strings.CutPrefix(string(link[:n]), "socket:[")
		if !ok {
			return true
		}
		inode, err := strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 64)
		return err != nil || visit(inode)
	})
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) {
		return ErrGone
	}
	return err
}

// names calls visit with the names in a directory, until visit returns false.
func names(dir string, visit func(fd int, name string) bool) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }() // it was only read
	for {
		some, err := d.Readdirnames(256)
		for _, name := range some {
			if !visit(int(d.Fd()), name) {
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Newest returns the ID that the kernel gave to a process or thread last. While Newest does not
// change, there are no new processes.
func (p *FS) Newest() (string, error) {
	var buf [128]byte
	path := filepath.Join(p.Root, "loadavg")
	text, err := ReadFile(path, buf[:], nil)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	fields := bytes.Fields(text)
	if len(fields) < 5 {
		return "", fmt.Errorf("read %s: %d fields, not 5", path, len(fields))
	}
	return string(fields[4]), nil
}

// CheckNamespace returns nil if the proc file system belongs to the agent's own process
// namespace.
func (p *FS) CheckNamespace() error {
	self, err := os.Readlink(filepath.Join(p.Root, "self"))
	if err != nil {
		return fmt.Errorf("find the agent's own process: %w", err)
	}
	if self != strconv.Itoa(os.Getpid()) {
		return fmt.Errorf("%s belongs to another process namespace than the agent: mount the agent's own /proc there", p.Root)
	}
	return nil
}

// Age returns how long ago a process was started. Both clocks are in the reader's time
// namespace.
func Age(who Process) time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0 // every kernel since 2.6.39 has this clock
	}
	return max(0, time.Duration(now.Nano())-time.Duration(who.Start)*(time.Second/ticks))
}
