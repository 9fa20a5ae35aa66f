package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// builder builds a release.
type builder struct {
	root             string // of the checkout
	dir              string // to write to; files of other builds in it stay, with their checksums
	base             string // the wheel without gymctl
	targets          []target
	wheels, archives bool
	dirty            bool // a changed checkout is no error
	out              io.Writer
}

// build writes all files and, at last, their checksums.
func (b *builder) build(ctx context.Context) error {
	s, err := readSource(ctx, b.root)
	switch {
	case err != nil:
		return err
	case s.modified && !b.dirty:
		return errDirty
	}
	fmt.Fprintf(b.out, "version %s, commit %s, %s, files of %s\n", s.version, commitName(s), runtime.Version(),
		s.time.Format("2006-01-02 15:04:05"))
	var base []entry
	if b.wheels {
		data, err := os.ReadFile(b.base)
		if err != nil {
			return err
		}
		if base, err = readZip(data); err != nil {
			return fmt.Errorf("%s: %w", b.base, err)
		}
	}
	work, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work) //nolint:errcheck // only what was made here
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return err
	}
	shared, err := b.shared(ctx, s, work)
	if err != nil {
		return err
	}
	old, err := readSums(b.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var sums []sumLine
	write := func(name string, data []byte) error {
		sum := sha256.Sum256(data)
		sums = append(sums, sumLine{hex.EncodeToString(sum[:]), name})
		fmt.Fprintf(b.out, "%x  %s  %.1f MB\n", sum[:6], name, float64(len(data))/1e6)
		return os.WriteFile(filepath.Join(b.dir, name), data, 0o644)
	}
	for _, t := range b.targets {
		if err := b.target(ctx, s, t, base, shared, work, write); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
	}
	if b.archives {
		if err := write("Containerfile", containerfile); err != nil {
			return err
		}
	}
	return writeSums(b.dir, sums, old)
}

// target builds everything for one platform.
func (b *builder) target(ctx context.Context, s source, t target, base, shared []entry, work string,
	write func(string, []byte) error) error {
	binary, err := compile(ctx, b.root, s, t, work)
	if err != nil {
		return err
	}
	if err := checkBinary(t, binary); err != nil {
		return err
	}
	all, err := modules(ctx, b.root, t, binary)
	if err != nil {
		return err
	}
	bill, err := billOf(s, t, binary, all)
	if err != nil {
		return err
	}
	texts := licenceTexts(all)
	if b.wheels {
		entries, err := wheelFor(base, t, s.version, binary, texts, find(shared, "LICENSE").data, bill)
		if err != nil {
			return err
		}
		data, err := packWheel(entries, s.time)
		if err != nil {
			return err
		}
		if err := write(t.wheel(s.version), data); err != nil {
			return err
		}
	}
	if !b.archives {
		return nil
	}
	if err := write(t.folder(s.version)+".cdx.json", bill); err != nil {
		return err
	}
	files := append([]entry{
		{path: t.binary(), data: binary, mode: 0o755}, {path: licencesName, data: texts},
		{path: "gymctl.cdx.json", data: bill},
	}, shared...)
	for i := range files {
		files[i].path = t.folder(s.version) + "/" + files[i].path
	}
	var packed bytes.Buffer
	if t.os == "windows" {
		err = writeZip(&packed, sorted(files), s.time)
	} else {
		err = writeTar(&packed, files, s.time)
	}
	if err != nil {
		return err
	}
	if err := write(t.archive(s.version), packed.Bytes()); err != nil {
		return err
	}
	if t.os != "linux" {
		return nil
	}
	packed.Reset()
	if err := writeTar(&packed, rootFS(binary, texts, find(shared, "LICENSE").data), s.time); err != nil {
		return err
	}
	return write("rootfs-"+t.arch+".tar.gz", packed.Bytes())
}

// compile builds gymctl for a target. The sources are named by their place in the module, and the linker draws no
// identity of its own, so that the folder of the checkout does not show.
func compile(ctx context.Context, root string, s source, t target, work string) ([]byte, error) {
	to := filepath.Join(work, strings.ReplaceAll(t.String(), "/", "-"), t.binary())
	modified := ""
	if s.modified {
		modified = " -X clustergym/cmd/gymctl/internal/cli.ReleaseModified=true"
	}
	_, err := run(ctx, root, t.settings(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags",
		fmt.Sprintf(
			"-s -w -buildid= -X clustergym/cmd/gymctl/internal/cli.ReleaseVersion=%s -X "+
				"clustergym/cmd/gymctl/internal/cli.ReleaseCommit=%s%s", s.version, s.commit, modified),
		"-o", to, "./cmd/gymctl")
	if err != nil {
		return nil, err
	}
	return os.ReadFile(to)
}

// shared returns what is in every archive: texts of the project, completions and manual pages. gymctl itself writes the
// latter, so one is built for this machine.
func (b *builder) shared(ctx context.Context, s source, work string) ([]entry, error) {
	var all []entry
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		data, err := os.ReadFile(filepath.Join(b.root, name))
		if err != nil {
			return nil, err
		}
		all = append(all, entry{path: name, data: data})
	}
	if !b.archives {
		return all, nil
	}
	host := target{os: runtime.GOOS, arch: runtime.GOARCH}
	if _, err := compile(ctx, b.root, s, host, work); err != nil {
		return nil, err
	}
	gymctl := filepath.Join(work, host.os+"-"+host.arch, host.binary())
	for _, shell := range [][2]string{{"bash", "gymctl.bash"}, {"zsh", "_gymctl"}, {"fish", "gymctl.fish"},
		{"powershell", "gymctl.ps1"}} {
		text, err := run(ctx, b.root, nil, gymctl, "completion", shell[0])
		if err != nil {
			return nil, err
		}
		all = append(all, entry{path: "completions/" + shell[1], data: text})
	}
	pages := filepath.Join(work, "man")
	if _, err := run(ctx, b.root, nil, gymctl, "man", pages); err != nil {
		return nil, err
	}
	err := fs.WalkDir(os.DirFS(pages), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(pages, path))
		all = append(all, entry{path: "man/man1/" + filepath.ToSlash(path), data: data})
		return err
	})
	return all, err
}

//go:embed Containerfile
var containerfile []byte

// rootFS is the whole content of a container: the program, a user without rights, and folders that it may write to.
func rootFS(binary, licences, own []byte) []entry {
	const user = 65532 // as other images without a shell call nobody
	return []entry{
		{path: "etc/"},
		{path: "etc/passwd",
			data: []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/data:/sbin/nologin\n")},
		{path: "etc/group", data: []byte("root:x:0:\nnonroot:x:65532:\n")},
		{path: "etc/nsswitch.conf", data: []byte("hosts: files dns\n")},
		{path: "tmp/", mode: 0o777 | fs.ModeSticky},
		{path: "usr/"}, {path: "usr/bin/"}, {path: "usr/share/"}, {path: "usr/share/doc/"}, {path: "usr/share/doc/gymctl/"},
		{path: "usr/bin/gymctl", data: binary, mode: 0o755},
		{path: "usr/share/doc/gymctl/LICENSE", data: own},
		{path: "usr/share/doc/gymctl/" + licencesName, data: licences},
		{path: "data/", uid: user},
	}
}
