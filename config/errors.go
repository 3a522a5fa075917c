// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxListed bounds the listed mistakes, and the listed notices, of a file: a wrong file
// of megabytes must not cause a log of megabytes.
const maxListed = 1000

// Error is one mistake in a configuration file. No message holds a secret.
type Error struct {
	File    string
	Line    int    // from 1; 0 if the mistake is nowhere in particular
	Path    string // targets[2].readinessProbe.periodSeconds; empty for the file as a whole
	Message string
}

// Error returns the mistake as one line: file:line: path: message.
func (e Error) Error() string { return locate(e.File, e.Line, e.Path, e.Message) }

// Errors are the mistakes of a file, sorted by line. The entry after the thousandth
// mistake only says how many more there are.
type Errors []Error

// Error returns the mistakes, a line each.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i := range e {
		lines[i] = e[i].Error()
	}
	return strings.Join(lines, "\n")
}

// NoticeLevel says how much a notice matters.
type NoticeLevel uint8

// The levels.
const (
	Info NoticeLevel = iota
	Warn
)

// String returns info or warn.
func (l NoticeLevel) String() string {
	if l == Warn {
		return "warn"
	}
	return "info"
}

// Notice is something in a valid part of the file that its author should know. No
// message holds a secret.
type Notice struct {
	Level   NoticeLevel
	File    string
	Line    int
	Path    string
	Message string
}

// String returns the notice as one line: file:line: path: message.
func (n Notice) String() string { return locate(n.File, n.Line, n.Path, n.Message) }

func locate(file string, line int, path, message string) string {
	var b strings.Builder
	if file != "" {
		b.WriteString(file)
		if line > 0 {
			b.WriteString(":" + strconv.Itoa(line))
		}
		b.WriteString(": ")
	}
	if path != "" {
		b.WriteString(path + ": ")
	}
	b.WriteString(message)
	return b.String()
}

// findings collects the mistakes and notices of a file. Beyond maxListed it only counts
// them, so a file full of mistakes costs no memory.
type findings struct {
	file        string
	errs        Errors
	notices     []Notice
	moreErrs    int
	moreNotices int
}

func (f *findings) errorf(line int, path, format string, args ...any) {
	if len(f.errs) == maxListed {
		f.moreErrs++
		return
	}
	f.errs = append(f.errs, Error{File: f.file, Line: line, Path: path, Message: fmt.Sprintf(format, args...)})
}

func (f *findings) noticef(level NoticeLevel, line int, path, format string, args ...any) {
	if len(f.notices) == maxListed {
		f.moreNotices++
		return
	}
	f.notices = append(f.notices, Notice{Level: level, File: f.file, Line: line, Path: path, Message: fmt.Sprintf(format, args...)})
}

// mistakes returns how many mistakes there are so far.
func (f *findings) mistakes() int { return len(f.errs) + f.moreErrs }

// failed says whether there was a mistake.
func (f *findings) failed() bool { return len(f.errs) > 0 }

// sorted returns the findings in the order of the file. Equal lines stay in the
// order in which they were found, which is that of the keys in the documentation.
func (f *findings) sorted() (Errors, []Notice) {
	errs, notices := f.errs, f.notices
	slices.SortStableFunc(errs, func(a, b Error) int { return cmp.Compare(a.Line, b.Line) })
	slices.SortStableFunc(notices, func(a, b Notice) int { return cmp.Compare(a.Line, b.Line) })
	if f.moreErrs > 0 {
		errs = append(errs, Error{Message: fmt.Sprintf("… and %d more mistakes", f.moreErrs)})
	}
	if f.moreNotices > 0 {
		last := notices[len(notices)-1]
		notices = append(notices, Notice{
			Level: Warn, File: last.File, Line: last.Line,
			Message: fmt.Sprintf("… and %d more notices", f.moreNotices),
		})
	}
	return errs, notices
}
