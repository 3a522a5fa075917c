// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/prober-exporter/prober_exporter/prober/instance/proc"
)

// byPIDFile finds the process whose PID is in the pid file.
func (p *Source) byPIDFile(w *watched) (proc.Process, bool, error) {
	w.staleWhy = ""
	pid, written, err := readPIDFile(w.pidFile)
	if err != nil {
		return proc.Process{}, false, err
	}
	if pid == 0 {
		return w.keep()
	}
	if pid == os.Getpid() {
		return proc.Process{}, false, errItself
	}
	is, err := p.eyes.procs.Stat(pid)
	if errors.Is(err, proc.ErrGone) {
		if errors.Is(unix.Kill(pid, 0), unix.EPERM) {
			return proc.Process{}, false, errHidden
		}
		return w.keep()
	}
	if err != nil {
		return proc.Process{}, false, err
	}
	if is.Ended {
		return w.keep()
	}
	if w.alive && is.Process == w.lead {
		return w.lead, true, nil
	}
	if written.before(is.Process) {
		w.staleWhy = "the agent ignores the pid file, which is older than the process it names; touch the file if it is right"
		if w.stale != is.Process {
			w.stale = is.Process
			file := w.pidFile // another reload may change it
			p.notes.Add(func() {
				p.log.Warn("ignoring a pid file that is older than the process it names; touch the file if it is right",
					"target", w.name, "file", file, "pid", pid)
			})
		}
		return w.keep()
	}
	thread, err := p.eyes.procs.IsThread(pid)
	if errors.Is(err, proc.ErrGone) || thread {
		return w.keep()
	}
	return is.Process, err == nil, err
}

// pidFileText is more bytes than a PID and the blanks around it need.
const pidFileText = 128

// slack is how much older than its process a pid file may be: some file systems keep time in
// steps of two seconds.
const slack = 2 * time.Second

// written is when a pid file was written.
type written struct {
	at       time.Time
	inMemory bool // on a file system that does not outlive a boot
}

// before reports whether the file was written before the process began: the PID was that of
// another process then. A file in memory that seems older than the boot shows that the clock
// has been set since; before then returns false.
func (f written) before(who proc.Process) bool {
	now := time.Now()
	if f.inMemory && f.at.Before(now.Add(-proc.Age(proc.Process{}))) {
		return false
	}
	return f.at.Add(slack).Before(now.Add(-proc.Age(who)))
}

// readPIDFile reads the number in the first line of a file; 0 if there is none yet.
func readPIDFile(path string) (pid int, when written, err error) {
	var buf [pidFileText]byte
	text, err := proc.ReadFile(path, buf[:], func(fd int) error {
		var stat unix.Stat_t
		if err := unix.Fstat(fd, &stat); err != nil {
			return err
		}
		if stat.Mode&unix.S_IFMT != unix.S_IFREG {
			return errors.New("not a regular file")
		}
		when.at = time.Unix(stat.Mtim.Unix())
		var fs unix.Statfs_t
		when.inMemory = unix.Fstatfs(fd, &fs) == nil && (uint32(fs.Type) == unix.TMPFS_MAGIC || uint32(fs.Type) == unix.RAMFS_MAGIC)
		return nil
	})
	if errors.Is(err, os.ErrNotExist) {
		return 0, when, nil
	}
	if err != nil {
		return 0, when, fmt.Errorf("read pid file %q: %w", path, err)
	}
	line, _, _ := bytes.Cut(bytes.TrimSpace(text), []byte("\n"))
	if len(line) == 0 && len(text) < len(buf) {
		return 0, when, nil
	}
	number, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 10, 32)
	if err != nil || number <= 0 {
		return 0, when, fmt.Errorf("read pid file %q: no process number in its first line", path)
	}
	return int(number), when, nil
}
