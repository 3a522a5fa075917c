// Copyright 2026 The prober_exporter Authors
// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prober-exporter/prober_exporter/internal/testutil"
)

const helperEnv = "PROBER_EXPORTER_TEST_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) == "system" {
		_, err := NewCA("").Get(context.Background())
		fmt.Println(err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// soon lets the time of a bubble pass until the next look.
func soon(t *testing.T) {
	t.Helper()
	time.Sleep(fresh)
}

// A token is read again a second after the last look, and no sooner, however a kubelet has swapped
// the mounted Secret. It has no newline at its end.
func TestTokenRotates(t *testing.T) {
	secret := testutil.NewSecret(t).Put(t, map[string]string{"token": "one\n"})
	synctest.Test(t, func(t *testing.T) {
		token := NewToken(secret.Path("token"))
		want := func(want string) {
			t.Helper()
			if got, err := token.Get(t.Context()); got != want || err != nil {
				t.Errorf("got %q, error %v, want %q", got, err, want)
			}
		}
		want("one")
		secret.Put(t, map[string]string{"token": "two\r\n"})
		time.Sleep(fresh - time.Millisecond)
		want("one")
		time.Sleep(time.Millisecond)
		want("two")
		if got := token.Values(); strings.Join(got, " ") != "one two" {
			t.Errorf("remembers %q", got)
		}
		for i := range 2 * maxValues {
			testutil.Rewrite(t, secret.Path("token"), fmt.Sprintf("token %d", i))
			soon(t)
			want(fmt.Sprintf("token %d", i))
		}
		if got := token.Values(); len(got) != maxValues || got[maxValues-1] != fmt.Sprintf("token %d", 2*maxValues-1) {
			t.Errorf("remembers %q", got)
		}
	})
}

// A file is parsed again if another file has taken its place, or if its size or time has changed;
// and, while it is young, at each look, because it may change again within a tick of its clock.
func TestParsedWhenChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		write := func(content string, age time.Duration) {
			testutil.Rewrite(t, path, content)
			if err := os.Chtimes(path, time.Time{}, begin.Add(-age)); err != nil {
				t.Fatal(err)
			}
		}
		parses := 0
		s := newSource([]string{path}, 100, func(contents [][]byte) (string, error) {
			parses++
			return string(contents[0]), nil
		})
		for i, step := range []struct {
			name   string
			change func()
			value  string
			parses int
		}{
			{"at first", func() { write("a", time.Hour) }, "a", 1},
			{"unchanged", func() {}, "a", 0},
			{"another time", func() { write("b", 2*time.Hour) }, "b", 1},
			{"another size", func() { write("bb", 2*time.Hour) }, "bb", 1},
			{"another file", func() {
				if err := os.Rename(path, path+".old"); err != nil {
					t.Fatal(err)
				}
				write("cc", 2*time.Hour)
			}, "cc", 1},
			{"young", func() { write("d", -5*time.Second) }, "d", 1},
			{"young, and changed within the tick", func() { write("e", -5*time.Second) }, "e", 1},
			{"old", func() { time.Sleep(settled + time.Second) }, "e", 1},
			{"old, and parsed since", func() {}, "e", 0},
		} {
			soon(t)
			step.change()
			parses = 0
			if got, err := s.get(t.Context()); got.value != step.value || err != nil || parses != step.parses {
				t.Errorf("%d, %s: got %q, error %v after %d parses, want %q after %d", i, step.name, got.value, err, parses, step.value, step.parses)
			}
		}
	})
}

// A file that is missing or broken is an error, which names the file and never its content, and
// the next look after a repair finds the file.
func TestMissingAndBroken(t *testing.T) {
	dir := t.TempDir()
	path := "" // another for each case: a bubble begins anew
	authority := testutil.NewAuthority(t, "one")
	cert, key := authority.Issue(t)
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	getCA := func(ctx context.Context) error { _, err := NewCA(path).Get(ctx); return err }
	getToken := func(ctx context.Context) error { _, err := NewToken(path).Get(ctx); return err }
	getCert := func(ctx context.Context) error { _, _, err := NewPair(path, dir+"/key").Get(ctx); return err }
	getKey := func(ctx context.Context) error { _, _, err := NewPair(dir+"/cert", path).Get(ctx); return err }
	testutil.Rewrite(t, dir+"/key", key)
	testutil.Rewrite(t, dir+"/cert", cert)
	for _, c := range []struct {
		name      string
		get       func(context.Context) error
		bad, good string
		want      string
	}{
		{"CA without certificates", getCA, "hunter2", authority.PEM(), "has no certificate in PEM form"},
		{"CA of a key", getCA, key, authority.PEM(), "has no certificate in PEM form"},
		{"large CA", getCA, strings.Repeat("x", maxPEM+1), authority.PEM(), "is larger than 1024 KiB"},
		{"CA cut off", getCA, authority.PEM() + cert[:len(cert)-10], authority.PEM() + cert, "ends in the middle of a PEM block"},
		{"empty token", getToken, "\n", "x", "is empty"},
		{"token of spaces", getToken, " \t\r\n", "x", "is empty"},
		{"token with a newline", getToken, "hunter2\nhunter2", "x", "has a newline or another control character: such a header cannot be sent"},
		{"large token", getToken, strings.Repeat("x", maxToken+1), "x", "is larger than 16 KiB"},
		{"certificate", getCert, "hunter2", cert, "tls: failed to find any PEM data in certificate input"},
		{"chain cut off", getCert, cert + authority.PEM()[:100], cert + authority.PEM(), "ends in the middle of a PEM block"},
		{"key", getKey, "hunter2", key, "tls: failed to find any PEM data in key input"},
		{"key in place of certificate", getCert, key, cert, `tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched`},
	} {
		path = filepath.Join(dir, strings.ReplaceAll(c.name, " ", "-"))
		synctest.Test(t, func(t *testing.T) {
			check := func(state, want string) {
				t.Helper()
				soon(t)
				err := c.get(t.Context())
				if got := fmt.Sprint(err); (err == nil) != (want == "") || !strings.HasSuffix(got, want) || strings.Contains(got, "hunter2") ||
					err != nil && !strings.Contains(got, path) {
					t.Errorf("%s, %s: error %v, want %q", c.name, state, err, want)
				}
			}
			os.Remove(path)
			check("missing", "no such file or directory")
			testutil.Rewrite(t, path, c.bad)
			check("broken", c.want)
			testutil.Rewrite(t, path, c.good)
			check("repaired", "")
			os.Remove(path)
			check("gone", "no such file or directory")
			if err := os.Symlink(pipe, path); err != nil {
				t.Fatal(err)
			}
			check("a pipe", "is not a regular file")
			os.Remove(path)
			if err := os.Symlink(dir, path); err != nil {
				t.Fatal(err)
			}
			check("a directory", "is not a regular file")
			os.Remove(path)
			testutil.Rewrite(t, path, c.good)
			check("back", "")
		})
	}
	_, err := NewToken(dir + "/\n" + strings.Repeat("x", 300)).Get(t.Context())
	if text := fmt.Sprint(err); !errors.Is(err, syscall.ENAMETOOLONG) || len(text) > 300 || strings.Contains(text, "\n") {
		t.Errorf("error %v", err)
	}
}

// A certificate and a key that do not fit leave the last good pair in use, with a doubt. A file
// that is missing does not.
func TestPairKeepsTheLastGoodOne(t *testing.T) {
	authority := testutil.NewAuthority(t, "one")
	cert, key := authority.Issue(t)
	cert2, key2 := authority.Issue(t)
	old, oldKey := authority.Issue(t, testutil.Expired)
	secret := testutil.NewSecret(t).Put(t, map[string]string{"cert": cert, "key": key2})
	pair := NewPair(secret.Path("cert"), secret.Path("key"))
	synctest.Test(t, func(t *testing.T) {
		for i, step := range []struct {
			cert, key   string
			want        string // the certificate in use
			doubt, fail string
		}{
			{cert, key2, "", "", "tls: private key does not match public key"},
			{cert, key, cert, "", ""},
			{cert2, key, cert, "tls: private key does not match public key", ""},
			{"junk", key, cert, "tls: failed to find any PEM data in certificate input", ""},
			{"", key, "", "", "no such file or directory"},
			{cert2, key, cert, "tls: private key does not match public key", ""},
			{cert2, key2, cert2, "", ""},
			{old, oldKey, old, "", ""},
		} {
			files := map[string]string{"cert": step.cert, "key": step.key}
			if step.cert == "" {
				delete(files, "cert")
			}
			secret.Put(t, files)
			soon(t)
			got, doubt, err := pair.Get(t.Context())
			// A bubble begins in the year 2000, before all certificates.
			if strings.Contains(doubt, "is not valid before") {
				doubt = ""
			}
			if (err == nil) != (step.fail == "") || !strings.HasSuffix(fmt.Sprint(err), step.fail) {
				t.Errorf("%d: error %v, want %q", i, err, step.fail)
			}
			if (doubt == "") != (step.doubt == "") || !strings.HasSuffix(doubt, step.doubt) || doubt != "" && !strings.HasPrefix(doubt, "an old client certificate is in use: "+secret.Path("cert")) {
				t.Errorf("%d: doubt %q, want %q", i, doubt, step.doubt)
			}
			if step.want != "" && (got == nil || pemOf(got.Certificate[0]) != step.want) {
				t.Errorf("%d: another certificate", i)
			}
		}
	})
	if _, doubt, err := pair.Get(t.Context()); err != nil || !strings.Contains(doubt, "the client certificate has expired: it was valid until 20") {
		t.Errorf("expired: doubt %q, error %v", doubt, err)
	}
}

// Each certificate of a chain may give a doubt.
func TestPairDoubtsItsChain(t *testing.T) {
	authority := testutil.NewAuthority(t, "one")
	cert, key := authority.Issue(t)
	good, _ := authority.Issue(t)
	old, _ := authority.Issue(t, testutil.Expired)
	coming, _ := authority.Issue(t, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) })
	for chain, want := range map[string]string{
		cert + good:       "",
		cert + good + old: ": an intermediate of the client certificate has expired: it was valid until 20",
		cert + coming:     ": an intermediate of the client certificate is not valid before 20",
	} {
		secret := testutil.NewSecret(t).Put(t, map[string]string{"cert": chain, "key": key})
		_, doubt, err := NewPair(secret.Path("cert"), secret.Path("key")).Get(t.Context())
		if err != nil || (doubt == "") != (want == "") || want != "" && !strings.HasPrefix(doubt, secret.Path("cert")+want) {
			t.Errorf("doubt %q, error %v, want %q", doubt, err, want)
		}
	}
}

// A file system that does not answer keeps a caller no longer than its context lasts, and keeps
// one goroutine, whoever else asks. Its late answer counts.
func TestHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, parses := make(chan struct{}), 0
		s := newSource(nil, 0, func([][]byte) (string, error) {
			parses++
			<-release
			return "late", nil
		})
		for range 3 {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			_, err := s.get(ctx)
			cancel()
			if took := time.Since(began); !errors.Is(err, errSlow) || took != 3*time.Second {
				t.Errorf("error %v after %v", err, took)
			}
		}
		close(release)
		synctest.Wait()
		if got, err := s.get(t.Context()); got.value != "late" || err != nil || parses != 1 {
			t.Errorf("got %q, error %v after %d parses", got.value, err, parses)
		}
	})
}

// However many files are on a file system that does not answer, the looks at them do not use up the
// threads of the process.
func TestManyHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, places := make(chan struct{}), make(chan struct{}, cap(allPlaces))
		var parses atomic.Int64
		var users sync.WaitGroup
		for range 2 * mostLooks {
			s := newSource(nil, 0, func([][]byte) (string, error) {
				parses.Add(1)
				<-release
				return "late", nil
			})
			s.places = places
			users.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, err := s.get(ctx); !errors.Is(err, errSlow) {
					t.Errorf("error %v", err)
				}
			})
		}
		users.Wait()
		if n := parses.Load(); n != mostLooks {
			t.Errorf("%d looks, want %d", n, mostLooks)
		}
		close(release)
		synctest.Wait()
		if n := parses.Load(); n != 2*mostLooks {
			t.Errorf("%d looks in the end, want %d", n, 2*mostLooks)
		}
	})
}

// A machine without certificate authorities is an error: no server could verify.
func TestSystemWithoutAuthorities(t *testing.T) {
	for file, want := range map[string]string{
		"/dev/null":                          "this machine has no certificate authorities of its own: set caFile\n",
		filepath.Join(t.TempDir(), "ca.pem"): "<nil>\n",
	} {
		if file != "/dev/null" {
			testutil.Rewrite(t, file, testutil.NewAuthority(t, "system").PEM())
		}
		command := exec.CommandContext(t.Context(), os.Args[0])
		command.Env = append(os.Environ(), helperEnv+"=system", "SSL_CERT_FILE="+file, "SSL_CERT_DIR="+t.TempDir())
		if out, err := command.Output(); string(out) != want || err != nil {
			t.Errorf("%s: %q, error %v, want %q", file, out, err, want)
		}
	}
}

// All users of a file share what was read, and nothing is kept that nobody uses.
func TestShared(t *testing.T) {
	dir := t.TempDir()
	ca, token, pair := NewCA(dir+"/a"), NewToken(dir+"/a"), NewPair(dir+"/a", dir+"/b")
	if ca != NewCA(dir+"/a") || token != NewToken(dir+"/a") || pair != NewPair(dir+"/a", dir+"/b") {
		t.Error("the same files twice")
	}
	if ca == NewCA(dir+"/b") || token == NewToken(dir+"/b") || pair == NewPair(dir+"/b", dir+"/a") {
		t.Error("other files are taken for the same")
	}
	runtime.KeepAlive([]any{ca, token, pair})
	testutil.Until(t, "the registry is empty", func() bool {
		runtime.GC()
		return authorities.size() == 0 && tokens.size() == 0 && pairs.size() == 0
	})
}

func (r *registry[K, V]) size() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.values)
}

// FuzzToken checks that whatever a file has, its token can be sent, and is the file's content but
// for the end of the line.
func FuzzToken(f *testing.F) {
	for _, seed := range []string{"", "token\n", "a\nb", "a\x00", "\r\n\r\n", " a\t", "ü"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		token := new(Token)
		got, err := token.parse([][]byte{[]byte(content)})
		switch {
		case err != nil && (got != "" || len(token.Values()) != 0):
			t.Errorf("%q: error %v with a token", content, err)
		case err == nil && (got == "" || strings.ContainsAny(got, "\r\n\x00\x7f") || strings.TrimRight(content, "\r\n") != got):
			t.Errorf("%q: token %q", content, got)
		}
	})
}

// pemOf returns a certificate as PEM.
func pemOf(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
