//go:build unix

package postgres

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// server is a database of the test's own, on a socket in a temporary directory.
type server struct {
	t   testing.TB
	bin string
	dir string
	as  *syscall.Credential // Postgres refuses to be run by root
}

// startServer makes and starts a server, and skips the test where Postgres is not installed.
func startServer(t testing.TB) *server {
	t.Helper()
	s := &server{t: t, bin: binaries(t)}
	// Not t.TempDir: the path of a socket may have no more than about 100 bytes.
	dir, err := os.MkdirTemp("/tmp", "pg")
	if err != nil {
		t.Fatal(err)
	}
	s.dir = dir
	t.Cleanup(func() {
		s.stop()
		_ = os.RemoveAll(dir)
	})
	if os.Getuid() == 0 {
		s.as = unprivileged(t)
		if err := os.Chown(dir, int(s.as.Uid), int(s.as.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	s.run("initdb", "-D", s.data(), "-U", "lab", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C")
	s.start()
	return s
}

// binaries finds where Postgres is installed: in the path, or where Debian puts it.
func binaries(t testing.TB) string {
	t.Helper()
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.Sort(dirs)
	slices.Reverse(dirs)
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err == nil {
			return dir
		}
	}
	path, err := exec.LookPath("initdb")
	if err != nil {
		t.Skip("Postgres is not installed: apt-get install postgresql")
	}
	return filepath.Dir(path)
}

func unprivileged(t testing.TB) *syscall.Credential {
	t.Helper()
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	t.Skip("Postgres does not run as root, and there is no user postgres or nobody to run it as")
	return nil
}

func (s *server) data() string { return filepath.Join(s.dir, "data") }

func (s *server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as}
	return cmd
}

func (s *server) run(name string, args ...string) {
	s.t.Helper()
	if out, err := s.command(name, args...).CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// start starts the server and waits until it answers.
func (s *server) start() {
	s.t.Helper()
	s.run("pg_ctl", "-D", s.data(), "-w", "-l", filepath.Join(s.dir, "log"), "-o",
		fmt.Sprintf("-k %s -c listen_addresses='' -c fsync=off", s.dir), "start")
}

// stop ends the server at once, as a machine does that loses its power.
func (s *server) stop() {
	if _, err := os.Stat(filepath.Join(s.data(), "postmaster.pid")); err != nil {
		return
	}
	out, err := s.command("pg_ctl", "-D", s.data(), "-w", "-m", "immediate", "stop").CombinedOutput()
	if err != nil && !strings.Contains(string(out), "no server running") {
		s.t.Errorf("pg_ctl stop: %v\n%s", err, out)
	}
}

func (s *server) url() string { return "postgres:///postgres?user=lab&host=" + s.dir }
