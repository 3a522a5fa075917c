// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// floorSlot is the grid of the floor's phases: few wake-ups belong to a floor, too.
const floorSlot = 50 * time.Millisecond

// floor starts the cheapest way to probe on this machine: the system calls of an attempt, made
// by hand in one loop around an epoll, which keeps only two counters.
func floor(s spec) (*subject, error) {
	if s.Action == actionExec {
		return inGoroutines(s, func(int) (func(context.Context) error, error) { return bareExec, nil })
	}
	f := &floorLoop{spec: s, conns: make([]floorConn, 1<<14), buf: make([]byte, 16<<10)}
	switch s.Action {
	case actionHTTP:
		f.request, f.done = []byte("GET / HTTP/1.1\r\nHost: bench\r\nUser-Agent: bench\r\nAccept: */*\r\nConnection: close\r\n\r\n"), hasHTTP
	case actionGRPC:
		f.request, f.done = healthRequest(), hasTrailers
	case actionTCP:
	default:
		return nil, fmt.Errorf("no floor for %q", s.Action)
	}
	for i := range hosts {
		address, err := netip.ParseAddrPort(s.address(i))
		if err != nil {
			return nil, fmt.Errorf("parse an address: %w", err)
		}
		f.addresses = append(f.addresses, &unix.SockaddrInet4{Port: int(address.Port()), Addr: address.Addr().As4()})
	}
	var err error
	if f.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("create an epoll: %w", err)
	}
	var running sync.WaitGroup
	running.Go(f.run)
	return &subject{
		counts: func() (uint64, uint64) { return f.ok.Load(), f.failed.Load() },
		why:    func() string { return "an attempt of the bare loop" },
		stop: func() {
			f.stopped.Store(true)
			running.Wait()
			_ = unix.Close(f.epoll)
		},
	}, nil
}

func bareExec(context.Context) error {
	pid, err := syscall.ForkExec(command, []string{command}, &syscall.ProcAttr{})
	if err != nil {
		return err
	}
	var status syscall.WaitStatus
	for {
		_, err = syscall.Wait4(pid, &status, 0, nil)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err == nil && status.ExitStatus() != 0 {
		err = errors.New("exit status is not 0")
	}
	return err
}

// floorLoop is the floor's loop. conns are its connections by descriptor.
type floorLoop struct {
	spec       spec
	request    []byte
	done       func(answer []byte) bool
	addresses  []*unix.SockaddrInet4
	epoll      int
	conns      []floorConn
	buf        []byte
	next       int // the index of the next probe
	flying     int
	ok, failed atomic.Uint64
	stopped    atomic.Bool
}

type floorConn struct {
	sent   bool
	answer []byte // the incomplete answer so far; later answers use its memory again
}

func (f *floorLoop) run() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	events := make([]unix.EpollEvent, 256)
	begin := time.Now()
	slots := 0
	for !f.stopped.Load() || f.flying > 0 {
		wait := 100
		if !f.stopped.Load() {
			if f.spec.Period == 0 {
				for f.flying < f.spec.Probes {
					f.dial()
				}
			} else {
				slot := time.Since(begin) / floorSlot
				for ; slots <= int(slot); slots++ {
					for range int(time.Duration(f.spec.Probes) * floorSlot / f.spec.Period) {
						f.dial()
					}
				}
				wait = int((time.Duration(slots)*floorSlot - time.Since(begin)).Milliseconds()) + 1
			}
		}
		n, err := unix.EpollWait(f.epoll, events, max(wait, 0))
		if err != nil && !errors.Is(err, unix.EINTR) {
			f.failed.Add(1)
			return
		}
		for _, e := range events[:max(n, 0)] {
			f.handle(int(e.Fd))
		}
	}
}

func (f *floorLoop) dial() {
	f.next++
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil || fd >= len(f.conns) {
		f.failed.Add(1)
		return
	}
	f.flying++
	_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 1})
	f.conns[fd].sent, f.conns[fd].answer = false, f.conns[fd].answer[:0]
	err = unix.Connect(fd, f.addresses[f.next%hosts])
	if err != nil && !errors.Is(err, unix.EINPROGRESS) {
		f.end(fd, false)
		return
	}
	events := uint32(unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLET&0xffffffff)
	if err := unix.EpollCtl(f.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)}); err != nil {
		f.end(fd, false)
	}
}

func (f *floorLoop) handle(fd int) {
	c := &f.conns[fd]
	if !c.sent {
		code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
		if err != nil || code != 0 || f.request == nil {
			f.end(fd, err == nil && code == 0)
			return
		}
		if n, err := unix.Write(fd, f.request); err != nil || n < len(f.request) {
			f.end(fd, false)
			return
		}
		c.sent = true
		return
	}
	for {
		n, err := unix.Read(fd, f.buf)
		if errors.Is(err, unix.EAGAIN) {
			return
		}
		answer := f.buf[:max(n, 0)]
		if len(c.answer) > 0 {
			c.answer = append(c.answer, answer...)
			answer = c.answer
		}
		if done := f.done(answer); done || n <= 0 {
			f.end(fd, done)
			return
		}
		if len(c.answer) == 0 {
			c.answer = append(c.answer, answer...)
		}
	}
}

func (f *floorLoop) end(fd int, ok bool) {
	if ok {
		f.ok.Add(1)
	} else {
		f.failed.Add(1)
	}
	f.flying--
	_ = unix.Close(fd)
}

func hasHTTP(answer []byte) bool {
	_, body, found := bytes.Cut(answer, []byte("\r\n\r\n"))
	return found && bytes.HasPrefix(answer, []byte("HTTP/1.1 200 ")) && len(body) >= 2
}

// These are the parts of HTTP/2 that a health check needs.
const (
	frameHeader   = 9
	frameData     = 0
	frameHeaders  = 1
	frameSettings = 4
	endStream     = 1
	endHeaders    = 4
)

// healthRequest returns a connection's whole request, written in one piece.
func healthRequest() []byte {
	b := []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	b = appendFrame(b, frameSettings, 0, 0, nil)
	fields := []byte{0x83, 0x86} // :method POST, :scheme http
	for _, h := range [][2]string{
		{":path", "/grpc.health.v1.Health/Check"}, {":authority", "bench"}, {"content-type", "application/grpc"}, {"te", "trailers"},
	} {
		fields = append(fields, 0, byte(len(h[0])))
		fields = append(fields, h[0]...)
		fields = append(fields, byte(len(h[1])))
		fields = append(fields, h[1]...)
	}
	b = appendFrame(b, frameHeaders, endHeaders, 1, fields)
	return appendFrame(b, frameData, endStream, 1, make([]byte, 5)) // an empty message
}

func appendFrame(b []byte, kind, flags byte, stream uint32, payload []byte) []byte {
	b = append(b, 0, 0, byte(len(payload)), kind, flags) // all payloads here are short
	b = binary.BigEndian.AppendUint32(b, stream)
	return append(b, payload...)
}

// hasTrailers reports whether the stream has ended after a message.
func hasTrailers(answer []byte) bool {
	message := false
	for len(answer) >= frameHeader {
		length := int(answer[0])<<16 | int(answer[1])<<8 | int(answer[2])
		switch kind, flags := answer[3], answer[4]; {
		case kind == frameData:
			message = true
		case kind == frameHeaders && flags&endStream != 0:
			return message
		}
		answer = answer[min(len(answer), frameHeader+length):]
	}
	return false
}
