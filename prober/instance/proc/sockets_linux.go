// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

const (
	// diagAgain is how long Sockets does not try sock_diag after a refusal. sock_diag may
	// come later: the kernel loads the module when a privileged process asks for it.
	diagAgain = 10 * time.Minute
	// diagV6Only is INET_DIAG_SKV6ONLY of linux/inet_diag.h.
	diagV6Only = 11
)

// Sockets reads the listening TCP sockets of the agent's network namespace: from sock_diag,
// whose cost does not depend on the number of connections, or from /proc/net/tcp if sock_diag
// is refused. The zero value is ready for use. A Sockets is not safe for concurrent use.
type Sockets struct {
	conn    *netlink.Conn
	worked  bool      // sock_diag has worked before, so its errors are temporary
	procNow bool      // the last read was of /proc/net/tcp
	tryDiag time.Time // sock_diag is not tried before then

	// For tests; nil and empty stand for the kernel's own.
	Dial func() (*netlink.Conn, error)
	proc string
}

// How names the way of the last read.
func (s *Sockets) How() string {
	if s.procNow {
		return ByProcNet
	}
	return BySockDiag
}

// Close closes the netlink socket; the next Read opens another.
func (s *Sockets) Close() {
	if s.conn != nil {
		_ = s.conn.Close() // no data can be lost
		s.conn = nil
	}
}

// Read appends the listening sockets, ordered by ID. With an error Read appends nothing,
// because the last read is the better guess.
func (s *Sockets) Read(into []Socket) ([]Socket, error) {
	var refusal error
	if !time.Now().Before(s.tryDiag) {
		found, err := s.table(into, s.diag)
		if err == nil {
			s.worked, s.procNow, s.tryDiag = true, false, time.Time{}
			return found, nil
		}
		s.Close()
		err = fmt.Errorf("read listening sockets by sock_diag: %w", err)
		if s.worked && !refused(err) {
			return into, err
		}
		refusal = err
	}
	found, err := s.table(into, s.procNet)
	if err != nil {
		return into, errors.Join(refusal, fmt.Errorf("read listening sockets: %w", err))
	}
	s.procNow = true
	if refusal != nil {
		s.tryDiag = time.Now().Add(diagAgain)
	}
	return found, nil
}

// refused reports whether the next try would fail as well: a kernel without sock_diag, a
// sandbox, or a filter of system calls.
func refused(err error) bool {
	for _, known := range []error{
		unix.EPERM, unix.EACCES, unix.EPROTONOSUPPORT, unix.EAFNOSUPPORT, unix.ENOENT, unix.ENOSYS, unix.EOPNOTSUPP,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// table appends the sockets of both families. It reads a table that comes in parts twice: a
// socket that was there all the time is in one of the two, and a socket that has gone is
// missing in the next read.
func (s *Sockets) table(into []Socket, read func([]Socket, uint8) ([]Socket, error)) ([]Socket, error) {
	found := into
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		before := len(found)
		for range 2 {
			var err error
			if found, err = read(found, family); err != nil {
				return into, err
			}
			if len(found)-before <= singlePart {
				break
			}
		}
	}
	return found[:len(into)+len(inOrder(found[len(into):]))], nil
}

// diag appends the listening sockets of a family by sock_diag.
func (s *Sockets) diag(into []Socket, family uint8) ([]Socket, error) {
	if s.conn == nil {
		dial := s.Dial
		if dial == nil {
			dial = dialDiag
		}
		conn, err := dial()
		if err != nil {
			return into, err
		}
		s.conn = conn
	}
	for range diagTries {
		found, whole, err := s.dump(into, family)
		if errors.Is(err, unix.ENOENT) && family == unix.AF_INET6 {
			return into, nil // a kernel without IPv6: the other family has been read
		}
		if err != nil {
			return into, err
		}
		if whole {
			return found, nil
		}
	}
	return into, errTorn
}

// dump takes one dump, and reports whether the kernel calls the dump consistent.
func (s *Sockets) dump(into []Socket, family uint8) (found []Socket, whole bool, err error) {
	// struct inet_diag_req_v2: family, protocol, extensions, padding, states, and the id
	// of one socket, which a dump ignores.
	var request [56]byte
	request[0], request[1] = family, unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(request[4:], 1<<unix.BPF_TCP_LISTEN)
	found = into
	whole, err = dump(s.conn, request[:], func(message []byte) error {
		one, err := parseDiag(message)
		found = append(found, one)
		return err
	})
	if err != nil {
		return into, false, err
	}
	return found, whole, nil
}

// parseDiag reads a struct inet_diag_msg: family, state, timer and retransmits (4 bytes);
// both ports and addresses, the interface and the cookie (48); the timer's expiry, both
// queues, the user and the inode (20). Ports and addresses are in the network's order.
func parseDiag(b []byte) (Socket, error) {
	if len(b) < 72 {
		return Socket{}, fmt.Errorf("a socket's message has %d bytes, not 72", len(b))
	}
	var addr netip.Addr
	switch b[0] {
	case unix.AF_INET:
		addr = netip.AddrFrom4([4]byte(b[8:12]))
	case unix.AF_INET6:
		addr = netip.AddrFrom16([16]byte(b[8:24])).Unmap()
	default:
		return Socket{}, fmt.Errorf("a socket of the unknown family %d", b[0])
	}
	only, err := v6only(b)
	if err != nil {
		return Socket{}, err
	}
	return Socket{
		V6Only: only,

		ID:    uint64(binary.NativeEndian.Uint32(b[44:])) | uint64(binary.NativeEndian.Uint32(b[48:]))<<32,
		Inode: uint64(binary.NativeEndian.Uint32(b[68:])),
		Local: netip.AddrPortFrom(addr, binary.BigEndian.Uint16(b[4:])),
	}, nil
}

// v6only reads the attribute INET_DIAG_SKV6ONLY, which the kernel adds for IPv6 listeners.
func v6only(b []byte) (only bool, err error) {
	if b[0] != unix.AF_INET6 {
		return false, nil
	}
	attributes, err := netlink.NewAttributeDecoder(b[72:])
	if err != nil {
		return false, err
	}
	for attributes.Next() {
		if attributes.Type() == diagV6Only {
			only = attributes.Uint8() != 0
		}
	}
	return only, attributes.Err()
}

// procNet appends the listening sockets of a family from /proc/net/tcp or tcp6.
func (s *Sockets) procNet(into []Socket, family uint8) (found []Socket, err error) {
	path := cmp.Or(s.proc, "/proc") + "/net/tcp"
	if family == unix.AF_INET6 {
		path += "6"
	}
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) && family == unix.AF_INET6 {
		return into, nil // a kernel without IPv6: the other family has been read
	}
	if err != nil {
		return into, err
	}
	defer func() { _ = f.Close() }() // it was only read
	found = into
	lines := bufio.NewScanner(f)
	lines.Scan() // the headings
	for lines.Scan() {
		one, listens, err := parseLine(lines.Bytes())
		if err != nil {
			return into, fmt.Errorf("%s: %w", path, err)
		}
		if listens {
			found = append(found, one)
		}
	}
	if err := lines.Err(); err != nil {
		return into, err
	}
	return found, nil
}

// parseLine reads a line of /proc/net/tcp. There may be very many lines of connections, so it
// skips them early: the state of a listener is 0A.
func parseLine(line []byte) (one Socket, listens bool, err error) {
	if !bytes.Contains(line, []byte(" 0A")) {
		return Socket{}, false, nil
	}
	var fields [10][]byte // the number, both addresses, the state; the last is the inode
	n := 0
	for field := range bytes.FieldsSeq(line) {
		if fields[n] = field; n == len(fields)-1 {
			break
		}
		n++
	}
	if n < len(fields)-1 {
		return Socket{}, false, fmt.Errorf("a line of %d fields, not %d", n, len(fields))
	}
	if string(fields[3]) != "0A" {
		return Socket{}, false, nil
	}
	address, port, _ := bytes.Cut(fields[1], []byte(":"))
	number, err1 := strconv.ParseUint(string(port), 16, 16)
	inode, err2 := strconv.ParseUint(string(fields[9]), 10, 63)
	// The address is in network order, shown as 4-byte words in the machine's order.
	var ip []byte
	var err3 error
	for word := range slices.Chunk(address, 8) {
		v, err := strconv.ParseUint(string(word), 16, 32)
		ip, err3 = binary.NativeEndian.AppendUint32(ip, uint32(v)), errors.Join(err3, err)
	}
	addr, ok := netip.AddrFromSlice(ip)
	if err := errors.Join(err1, err2, err3); err != nil || !ok {
		return Socket{}, false, errors.Join(fmt.Errorf("no socket in %q", line), err)
	}
	return Socket{ID: inodeID | inode, Inode: inode, Local: netip.AddrPortFrom(addr.Unmap(), uint16(number))}, true, nil
}
