// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// Event is an event of a watch. Next returns an event of the type ERROR as an error.
type Event struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// Decode decodes the object of the event.
func (e *Event) Decode(v any) error {
	return json.NewDecoder(bytes.NewReader(e.Object)).Decode(v)
}

// Stream is the stream of events of a watch: JSON values of bounded size.
type Stream struct {
	self    Self
	body    io.ReadCloser
	limited io.LimitedReader
	dec     *json.Decoder
	end     error // of the connection
}

// errTooLarge is the end of a stream whose next value is too large.
var errTooLarge = fmt.Errorf("larger than %d bytes", MaxObject)

func newStream(self Self, body io.ReadCloser) *Stream {
	s := &Stream{self: self, body: body, limited: io.LimitedReader{R: body}}
	s.dec = json.NewDecoder(bounded{s})
	return s
}

// bounded is the reader that a stream decodes from.
type bounded struct{ *Stream }

// Read reads from the connection, within the bound.
func (s bounded) Read(b []byte) (int, error) {
	if s.limited.N <= 0 {
		return 0, errTooLarge
	}
	n, err := s.limited.Read(b)
	if err != nil {
		s.end = err
	}
	return n, err
}

// cut reports whether err, an error of decode, means that the connection ended, and not that
// its data was wrong.
func (s *Stream) cut(err error) bool {
	return s.end != nil && (errors.Is(err, s.end) || errors.Is(err, io.ErrUnexpectedEOF))
}

func (s *Stream) decode(v any) error {
	s.limited.N = MaxObject
	return s.dec.Decode(v)
}

// Next waits for the next event. The error is an *Error, of the kind TroubleCut if the
// connection ended.
func (s *Stream) Next() (*Event, error) {
	e := new(Event)
	if err := s.decode(e); err != nil {
		if s.cut(err) {
			return nil, Errorf(TroubleCut, "watch %s: the watch was cut off again and again: %w", s.self, err)
		}
		return nil, Errorf(TroubleAnswer, "watch %s: %w", s.self, err)
	}
	if e.Type != "ERROR" {
		return e, nil
	}
	var says refused
	if err := e.Decode(&says); err != nil {
		return nil, Errorf(TroubleAnswer, "watch %s: %w", s.self, err)
	}
	trouble := TroubleAnswer
	if says.Code == http.StatusGone {
		trouble = TroubleExpired
	}
	return nil, Errorf(trouble, "watch %s: the API server ends it with %d: %s", s.self, says.Code, s.self.quote(says.Message))
}

// Close ends the watch.
func (s *Stream) Close() { s.body.Close() }
