// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// hosts is the number of loopback addresses on which the target server listens. Each address
// has ephemeral ports of its own, so that no side runs out of ports.
const hosts = 64

// endpoints are the addresses of the target server, by action.
type endpoints map[string][]string

// These are the measured actions. https is httpGet over TLS, verified is https with a tlsConfig, and unix is
// httpGet over a Unix socket. A heartbeat asks no server: its addresses are files.
const (
	actionHTTP     = "http"
	actionHTTPS    = "https"
	actionVerified = "verified"
	actionUnix     = "unix"
	actionTCP      = "tcp"
	actionGRPC     = "grpc"
	actionExec     = "exec"
	actionBeat     = "heartbeat"
)

// authority is the key of endpoints for the file with the certificate of https, whose name is
// serverName.
const (
	authority  = "authority"
	serverName = "bench"
)

// unixScheme begins the address of a Unix socket.
const unixScheme = "unix://"

const httpResponse = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"

// serve is the target server. It writes its addresses to w and serves until in ends.
func serve(in io.Reader, w io.Writer) error {
	listeners := map[string][]net.Listener{}
	all := endpoints{}
	for _, a := range []string{actionHTTP, actionHTTPS, actionTCP, actionGRPC} {
		ls, err := listenEverywhere()
		if err != nil {
			return err
		}
		listeners[a] = ls
		for _, l := range ls {
			all[a] = append(all[a], l.Addr().String())
		}
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return fmt.Errorf("make a directory for a socket: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // a directory that stays harms nobody
	socket, err := new(net.ListenConfig).Listen(context.Background(), "unix", filepath.Join(dir, "bench.sock"))
	if err != nil {
		return fmt.Errorf("listen on a Unix socket: %w", err)
	}
	listeners[actionUnix] = []net.Listener{socket}
	all[actionUnix] = []string{unixScheme + socket.Addr().String()}
	loop, err := newLoop()
	if err != nil {
		return err
	}
	for _, a := range []string{actionHTTP, actionUnix, actionTCP} {
		for _, l := range listeners[a] {
			if err := loop.listen(l, a != actionTCP); err != nil {
				return err
			}
		}
	}
	encrypted, file, err := newHTTPS()
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file) }()
	all[actionVerified], all[authority] = all[actionHTTPS], []string{file}
	answers := grpc.NewServer()
	healthpb.RegisterHealthServer(answers, health.NewServer())

	broken := make(chan error, 1+2*hosts)
	go func() { broken <- loop.run() }()
	for _, l := range listeners[actionHTTPS] {
		go func() { broken <- encrypted.ServeTLS(l, "", "") }()
	}
	for _, l := range listeners[actionGRPC] {
		go func() { broken <- answers.Serve(l) }()
	}
	if err := json.NewEncoder(w).Encode(all); err != nil {
		return err
	}
	// The end of this function ends the process, and with it all these servers.
	go func() {
		_, err := io.Copy(io.Discard, in)
		broken <- err
	}()
	return <-broken
}

// listenEverywhere listens on one port of several addresses of loopback.
func listenEverywhere() ([]net.Listener, error) {
	var last error
	for range 20 {
		ls := make([]net.Listener, 0, hosts)
		port := 0
		for i := range hosts {
			l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", fmt.Sprintf("127.1.0.%d:%d", i+1, port))
			if err != nil {
				last = err
				break
			}
			ls = append(ls, l)
			if tcp, ok := l.Addr().(*net.TCPAddr); ok {
				port = tcp.Port
			}
		}
		if len(ls) == hosts {
			return ls, nil
		}
		for _, l := range ls {
			_ = l.Close()
		}
	}
	return nil, fmt.Errorf("find a port that is free on %d addresses: %w", hosts, last)
}

// newHTTPS returns a server with a certificate of its own that speaks only HTTP/1.1, and a new file
// with the certificate.
func newHTTPS() (server *http.Server, file string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, "", fmt.Errorf("make a key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotAfter:     time.Now().Add(24 * time.Hour),
		DNSNames:     []string{serverName},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, "", fmt.Errorf("make a certificate: %w", err)
	}
	if file, err = writeCertificate(der); err != nil {
		return nil, "", fmt.Errorf("write the certificate: %w", err)
	}
	return &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "ok")
		}),
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
		TLSNextProto:      map[string]func(*http.Server, *tls.Conn, http.Handler){},
		ReadHeaderTimeout: time.Minute,
		// The end of a measurement cuts connections off.
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}, file, nil
}

// writeCertificate writes a certificate to a new file.
func writeCertificate(der []byte) (path string, err error) {
	f, err := os.CreateTemp("", "bench-*.crt")
	if err != nil {
		return "", err
	}
	return f.Name(), errors.Join(pem.Encode(f, &pem.Block{Type: "CERTIFICATE", Bytes: der}), f.Close())
}

// loop serves HTTP/1 and bare TCP with one epoll and without a goroutine for each connection.
// The server and the measured process share the machine, so the server must use as little CPU
// time as possible.
type loop struct {
	epoll int
	files []*os.File    // keeps the listeners' descriptors
	kinds map[int]waits // by descriptor
	buf   []byte
}

// waits says what a descriptor of the loop waits for.
type waits uint8

const (
	waitsForHTTP waits = iota + 1
	waitsForTCP
	httpListener
	tcpListener
)

func newLoop() (*loop, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create an epoll: %w", err)
	}
	return &loop{epoll: epoll, kinds: map[int]waits{}, buf: make([]byte, 4096)}, nil
}

func (l *loop) listen(listener net.Listener, isHTTP bool) error {
	filer, ok := listener.(interface{ File() (*os.File, error) })
	if !ok {
		return errors.New("a listener without a descriptor")
	}
	file, err := filer.File()
	if err != nil {
		return fmt.Errorf("take the listener's descriptor: %w", err)
	}
	l.files = append(l.files, file)
	fd := int(file.Fd())
	if err := unix.SetNonblock(fd, true); err != nil {
		return fmt.Errorf("make the listener non-blocking: %w", err)
	}
	kind := tcpListener
	if isHTTP {
		kind = httpListener
	}
	return l.add(fd, kind)
}

func (l *loop) add(fd int, kind waits) error {
	l.kinds[fd] = kind
	if err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
		return fmt.Errorf("watch a descriptor: %w", err)
	}
	return nil
}

func (l *loop) run() error {
	events := make([]unix.EpollEvent, 256)
	for {
		n, err := unix.EpollWait(l.epoll, events, -1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for events: %w", err)
		}
		for _, e := range events[:max(n, 0)] {
			fd := int(e.Fd)
			switch kind := l.kinds[fd]; kind {
			case httpListener:
				err = l.accept(fd, waitsForHTTP)
			case tcpListener:
				err = l.accept(fd, waitsForTCP)
			case waitsForHTTP, waitsForTCP:
				l.read(fd, kind)
			}
			if err != nil {
				return err
			}
		}
	}
}

func (l *loop) accept(listener int, kind waits) error {
	for {
		fd, _, err := unix.Accept4(listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return nil
		case errors.Is(err, unix.ECONNABORTED), errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("accept: %w", err)
		}
		if err := l.add(fd, kind); err != nil {
			return err
		}
	}
}

// read answers a request, which comes in one piece, and closes a connection that has ended.
func (l *loop) read(fd int, kind waits) {
	n, err := unix.Read(fd, l.buf)
	if errors.Is(err, unix.EAGAIN) || kind == waitsForTCP && n > 0 {
		return
	}
	if n > 0 {
		_, _ = unix.Write(fd, []byte(httpResponse)) // a client that is gone does not matter
	}
	delete(l.kinds, fd)
	_ = unix.Close(fd)
}
