// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package listener

import (
	"errors"
	"time"

	"github.com/prober-exporter/prober_exporter/prober/instance/proc"
)

const (
	// lookTime is how long all looks of a read may take together, and leastLook how long each may
	// take in any case. While a look is stuck, the others have only that.
	lookTime  = time.Second
	leastLook = 10 * time.Millisecond
)

// errStuck is the error of a look that has not ended, as on a file system that hangs.
var errStuck = errors.New("the file system does not answer")

// looker looks at the files of sockets. A look that does not end keeps a goroutine, and nobody else:
// the looker goes on with another goroutine, and does not look at that path again before the look has
// ended. The zero value needs a fileAt. The source's reading guards a looker.
type looker struct {
	fileAt func(path string) (proc.File, error)
	idle   *looking            // nil: there is none yet
	stuck  map[string]*looking // by path
}

// looking is a goroutine that looks at one path after the other.
type looking struct {
	asks    chan string
	answers chan looked // has room for one
}

// looked is the answer to a look.
type looked struct {
	file proc.File
	err  error
}

// look looks at a path, for as long as wait says.
func (k *looker) look(path string, wait time.Duration) (proc.File, error) {
	if l := k.stuck[path]; l != nil {
		select {
		case <-l.answers: // an old answer
			close(l.asks)
			delete(k.stuck, path)
		default:
			return proc.File{}, errStuck
		}
	}
	if len(k.stuck) > 0 {
		wait = leastLook
	}
	if k.idle == nil {
		k.idle = k.begin()
	}
	k.idle.asks <- path
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case answer := <-k.idle.answers:
		return answer.file, answer.err
	case <-timer.C:
	}
	if k.stuck == nil {
		k.stuck = map[string]*looking{}
	}
	k.stuck[path], k.idle = k.idle, nil
	return proc.File{}, errStuck
}

// begin starts a goroutine, which ends when its asks are closed, or when its last look has ended after
// that.
func (k *looker) begin() *looking {
	l := &looking{asks: make(chan string), answers: make(chan looked, 1)}
	go func() {
		defer close(l.answers)
		for path := range l.asks {
			file, err := k.fileAt(path)
			l.answers <- looked{file, err}
		}
	}()
	return l
}

// close ends the goroutines, and waits for all but those that are stuck: nothing can end these.
func (k *looker) close() {
	if k.idle != nil {
		close(k.idle.asks)
		<-k.idle.answers
	}
	for _, l := range k.stuck {
		close(l.asks)
	}
	k.idle, k.stuck = nil, nil
}
