//go:build unix

package ordinary

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe without a writer would hold a plain open for ever, and a device would be read without end.
func TestPipesSocketsAndDevicesAreRefusedAtOnce(t *testing.T) {
	dir, err := os.MkdirTemp("", "o") // a short path: sockets have a limit
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	pipe, socket, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "socket"), filepath.Join(dir, "link")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if err := os.Symlink("/dev/zero", link); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	for name, say := range map[string]string{pipe: "a pipe", socket: "a socket", link: "a device",
		"/dev/zero": "a device"} {
		if _, err := Read(name, 100); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v, expected %q", name, err, say)
		}
	}
	for _, name := range []string{"pipe", "socket", "link"} {
		if _, err := OpenIn(root, name); err == nil {
			t.Errorf("%s below a root was opened", name)
		}
	}
}
