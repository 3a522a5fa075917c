// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package failopen

import (
	"errors"
	"io"
	"syscall"
	"time"
)

// Early asks if the arguments are the flags of the client alone, with a URL of loopback. It is
// done if the answer is plain, if nobody answers, or if the time of patience is over. Otherwise
// main asks again.
func Early(args []string, patience func() time.Duration, stdout, stderr io.Writer) (code int, done bool) {
	to, ok := plainArgs(args)
	if !ok {
		return 0, false
	}
	a, done := to.ask(patience())
	if !done {
		return 0, false
	}
	return a.Tell(stdout, stderr), true
}

// Stdout and Stderr write to the streams of the process. Unlike the files of package os, a
// write to a pipe that nobody reads does not kill the process.
const (
	Stdout = stream(1)
	Stderr = stream(2)
)

type stream int

func (s stream) Write(p []byte) (int, error) { return syscall.Write(int(s), p) }

// target is where to ask: the address as it is written, and as the kernel takes it.
type target struct {
	host, path string
	family     int
	address    syscall.Sockaddr
}

// plainArgs returns where the flags of the client ask. It is not ok if there are other flags,
// or if the URL is not a plain one of a loopback address.
func plainArgs(args []string) (to target, ok bool) {
	const asked, failOpen = "--health.check=http://", "--health.check.fail-open"
	if len(args) != 2 {
		return target{}, false
	}
	url := args[0]
	if url == failOpen {
		url = args[1]
	} else if args[1] != failOpen {
		return target{}, false
	}
	before, rest, ok := cut(url, asked)
	if !ok || before != "" {
		return target{}, false
	}
	host, path, ok := cut(rest, "/")
	to = target{host: host, path: "/" + path}
	if before, port, found := cut(host, "127.0.0.1:"); found && before == "" {
		to.family, to.address = syscall.AF_INET, &syscall.SockaddrInet4{Port: int(number(port)), Addr: [4]byte{127, 0, 0, 1}}
		return to, ok && isPort(port) && isPlain(path)
	}
	before, port, found := cut(host, "[::1]:")
	to.family, to.address = syscall.AF_INET6, &syscall.SockaddrInet6{Port: int(number(port)), Addr: [16]byte{15: 1}}
	return to, ok && found && before == "" && isPort(port) && isPlain(path)
}

func isPort(digits string) bool { return 0 < number(digits) && number(digits) < 1<<16 }

// number returns the number that digits stand for, or -1.
func number(digits string) int64 {
	n := int64(0)
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' || n > 1<<40 {
			return -1
		}
		n = 10*n + int64(c-'0')
	}
	if digits == "" {
		return -1
	}
	return n
}

// isPlain reports whether a path and its query need no escape.
func isPlain(path string) bool {
	for _, c := range []byte(path) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (c < '-' || c > '9') && c != '_' && c != '~' && c != '?' && c != '=' && c != '&' { // from - to 9: -./ and digits
			return false
		}
	}
	return true
}

// ask asks over one connection, with system calls that have a timeout: package net is initialized
// too late. It is not done if it has met anything but a plain answer.
func (to target) ask(patience time.Duration) (a Answer, done bool) {
	if patience <= 0 {
		return Answer{Problem: Late(patience)}, true
	}
	begin := time.Now()
	s, err := to.dial(patience)
	defer s.close()
	if errors.Is(err, syscall.ECONNREFUSED) {
		return Answer{Problem: Refused}, true
	}
	if err == nil {
		a, err = s.exchange(to, begin.Add(patience))
	}
	if err != nil && time.Since(begin) >= patience {
		return Answer{Problem: Late(patience)}, true
	}
	return a, err == nil
}

// socket is a connection whose system calls end after their timeout.
type socket int

const noSocket = socket(-1)

func (to target) dial(timeout time.Duration) (socket, error) {
	fd, err := syscall.Socket(to.family, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return noSocket, err
	}
	limit := syscall.NsecToTimeval(int64(timeout)) // of connect, too
	if err := syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_SNDTIMEO, &limit); err != nil {
		return socket(fd), err
	}
	return socket(fd), syscall.Connect(fd, to.address)
}

func (s socket) close() {
	if s != noSocket {
		_ = syscall.Close(int(s)) // the answer is known
	}
}

var errNotPlain = errors.New("not a plain answer")

// exchange sends a request and reads the answer until it is complete.
func (s socket) exchange(to target, deadline time.Time) (Answer, error) {
	request := "GET " + to.path + " HTTP/1.1\r\nHost: " + to.host + "\r\nUser-Agent: " + UserAgent + "\r\nConnection: close\r\n\r\n"
	if n, err := syscall.Write(int(s), []byte(request)); err != nil || n < len(request) {
		return Answer{}, errNotPlain
	}
	raw := make([]byte, 0, 2048)
	for len(raw) < cap(raw) {
		left := time.Until(deadline)
		if left <= 0 {
			return Answer{}, errNotPlain
		}
		limit := syscall.NsecToTimeval(int64(max(left, time.Microsecond))) // 0 is no limit
		if err := syscall.SetsockoptTimeval(int(s), syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &limit); err != nil {
			return Answer{}, err
		}
		n, err := syscall.Read(int(s), raw[len(raw):cap(raw)])
		if err != nil && !errors.Is(err, syscall.EINTR) || n == 0 && err == nil || time.Now().After(deadline) {
			return Answer{}, errNotPlain
		}
		raw = raw[:len(raw)+max(n, 0)]
		if a, ok := plainAnswer(string(raw)); ok {
			return a, nil
		}
	}
	return Answer{}, errNotPlain
}

// plainAnswer parses an answer that has the length of its body, as an agent writes it, and all
// of the body.
func plainAnswer(raw string) (a Answer, ok bool) {
	head, body, ok := cut(raw, "\r\n\r\n")
	line, fields, _ := cut(head, "\r\n")
	version, rest, _ := cut(line, " ")
	status, _, _ := cut(rest, " ")
	if !ok || version != "HTTP/1.1" || len(status) != 3 || number(status) < 200 {
		return Answer{}, false
	}
	length := int64(-1)
	for fields != "" {
		var field string
		field, fields, _ = cut(fields, "\r\n")
		switch name, value, _ := cut(field, ": "); name {
		case "Transfer-Encoding", "Content-Encoding":
			return Answer{}, false
		case "Content-Length":
			length = number(value)
		}
	}
	return Answer{Status: status, Body: body}, int64(len(body)) == length
}

// age returns how long ago the process was started, give or take a second, or 0 if this
// cannot be true.
func age() time.Duration {
	fd, err := syscall.Open("/proc/self/stat", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer func() { _ = syscall.Close(fd) }() // it was only read
	stat := make([]byte, 1024)               // one line, of less than 400 bytes
	n, err := syscall.Read(fd, stat)
	if err != nil {
		return 0
	}
	var now syscall.Sysinfo_t
	if err := syscall.Sysinfo(&now); err != nil {
		return 0
	}
	return ageAt(string(stat[:n]), time.Duration(now.Uptime)*time.Second)
}

// ageAt returns the age of a process from its stat file and the time since the boot.
func ageAt(stat string, uptime time.Duration) time.Duration {
	const tick, longest = time.Second / 100, time.Minute
	fields, left := stat, 22-2 // the second field, the name of the process, may have blanks
	for _, after, found := cut(fields, ") "); found; _, after, found = cut(fields, ") ") {
		fields = after
	}
	started := ""
	for ; left > 0; left-- {
		started, fields, _ = cut(fields, " ")
	}
	age := uptime - time.Duration(number(started))*tick
	if number(started) < 0 || age < 0 || age > longest { // these clocks differ
		return 0
	}
	return age
}
