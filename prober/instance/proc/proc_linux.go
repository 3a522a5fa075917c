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

// ErrGone says that there is no such process any more.
var ErrGone = errors.New("no such process")

// procBuffer bounds what is read of a file: beyond it no command line is matched.
const procBuffer = 64 << 10

// ticks is how many of the kernel's clock ticks, as it shows them, make a second: 100 on
// every architecture that Go knows, whatever the kernel's own timer does.
const ticks = 100

// FS reads processes from a proc file system. It is for one goroutine.
type FS struct {
	Root string
	buf  []byte
}

// Stat is what is used of /proc/PID/stat.
type Stat struct {
	Process
	Name   string
	Parent int
	Ended  bool // a zombie, of which no other thread runs on either
}

// ReadFile reads the beginning of a file into buf, without waiting for whoever may have
// the other end of it.
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

// again calls f until no signal interrupts it.
func again(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// of reads a file of a process; what it returns is good until the next call.
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

// Stat reads what a process is. The name in the file is of its own choice, brackets and
// blanks included: what follows counts from the last bracket.
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

// Runs reports whether a process is still the one that it was.
func (p *FS) Runs(who Process) (bool, error) {
	is, err := p.Stat(who.PID)
	if errors.Is(err, ErrGone) {
		return false, nil
	}
	return err == nil && is.Process == who && !is.Ended, err
}

// Command returns the command line with blanks between its words; that of a kernel's
// thread or a zombie is empty.
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

// IsThread reports whether the number is that of a thread that is not its process.
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

// All lists the processes; threads are not among them.
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

// VisitSockets calls visit with the inode of each socket that a process has open, until it
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

// names calls visit with the names in a directory, until it returns false.
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

// Newest returns the number that was given to a process or thread last; it tells whether
// there can be new ones.
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

// CheckNamespace returns nil if the numbers in the proc file system are those of our own process
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

// Age is how long ago a process was started. Both are in the reader's time namespace.
func Age(who Process) time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0 // every kernel since 2.6.39 has it
	}
	return max(0, time.Duration(now.Nano())-time.Duration(who.Start)*(time.Second/ticks))
}
