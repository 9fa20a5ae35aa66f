package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
)

// checkDir checks every file that SHA256SUMS of a release lists, and starts each gymctl that this machine can start. A
// file that is not listed is a fault, too: nobody could check it. The first fault of each file is in the error. It
// writes a line about each file to out.
func checkDir(ctx context.Context, dir string, out io.Writer) error {
	sums, err := readSums(dir)
	if err != nil {
		return err
	}
	if len(sums) == 0 {
		return fmt.Errorf("%s lists no file", sumsName)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "release-check-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work) //nolint:errcheck // only what was made here
	s := starter{dir: work, done: map[[32]byte]string{}}
	var faults []error
	listed := map[string]bool{sumsName: true}
	for _, l := range sums {
		listed[l.name] = true
		found, err := checkFile(ctx, &s, dir, l.name, l.sum)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", l.name, err))
			found = "FAULT"
		}
		fmt.Fprintf(out, "%s: %s\n", l.name, found)
	}
	for _, f := range files {
		if !listed[f.Name()] {
			faults = append(faults, fmt.Errorf("%s: %s does not list it", f.Name(), sumsName))
		}
	}
	return errors.Join(faults...)
}

// checkFile returns in words what a file holds.
func checkFile(ctx context.Context, s *starter, dir, name, sum string) (string, error) {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return "", err
	}
	if got := sha256.Sum256(data); hex.EncodeToString(got[:]) != sum {
		return "", fmt.Errorf("the checksum is %x, and %s says %s", got, sumsName, sum)
	}
	var (
		t       target
		binary  []byte
		version string
	)
	switch {
	case strings.HasSuffix(name, ".whl"):
		entries, err := readZip(data)
		if err != nil {
			return "", err
		}
		if t, binary, err = checkWheel(name, entries); err != nil {
			return "", err
		}
		version, _, _ = wheelName(name)
	case strings.HasSuffix(name, ".cdx.json"):
		n, err := checkBill(data)
		return fmt.Sprintf("%d components", n), err
	case strings.HasPrefix(name, "rootfs-"):
		arch := strings.TrimSuffix(strings.TrimPrefix(name, "rootfs-"), ".tar.gz")
		entries, err := readTar(data)
		if err != nil {
			return "", err
		}
		if t, err = findTarget("linux/" + arch); err != nil {
			return "", err
		}
		program := find(entries, "usr/bin/gymctl")
		if program == nil || program.mode != 0o755 {
			return "", errors.New("no usr/bin/gymctl that everybody may start")
		}
		binary = program.data
	case strings.HasPrefix(name, "gymctl-"):
		if t, version, binary, err = checkArchive(name, data); err != nil {
			return "", err
		}
	case name == "Containerfile":
		return "steps for podman and docker", nil
	default:
		return "", errors.New("the name is none of a release")
	}
	if err := checkBinary(t, binary); err != nil {
		return "", err
	}
	said, err := s.start(ctx, t, binary, version)
	return fmt.Sprintf("for %s, %s", t, said), err
}

// checkArchive returns the target of an archive, its version and the binary in it.
func checkArchive(name string, data []byte) (t target, version string, binary []byte, err error) {
	i := slices.IndexFunc(targets, func(t target) bool {
		version = strings.Split(name, "-")[1]
		return t.archive(version) == name
	})
	if i < 0 {
		return t, "", nil, errors.New("the name is none of an archive")
	}
	t = targets[i]
	read := readTar
	if t.os == "windows" {
		read = readZip
	}
	entries, err := read(data)
	if err != nil {
		return t, "", nil, err
	}
	folder := t.folder(version) + "/"
	for _, want := range []string{
		t.binary(), "LICENSE", "README.md", "CHANGELOG.md", licencesName, "gymctl.cdx.json",
		"completions/gymctl.bash", "completions/_gymctl", "completions/gymctl.fish", "completions/gymctl.ps1",
		"man/man1/gymctl.1", "man/man1/gymctl-train.1", "man/man1/gymctl-trace-stats.1",
	} {
		if e := find(entries, folder+want); e == nil || len(e.data) == 0 {
			return t, "", nil, fmt.Errorf("no %s%s", folder, want)
		}
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.path, folder) {
			return t, "", nil, fmt.Errorf("%s is outside %s", e.path, folder)
		}
	}
	program := find(entries, folder+t.binary())
	if program.mode != 0o755 {
		return t, "", nil, fmt.Errorf("%s has mode %o, want 755", program.path, program.mode)
	}
	if _, err := checkBill(find(entries, folder+"gymctl.cdx.json").data); err != nil {
		return t, "", nil, err
	}
	return t, version, program.data, nil
}

// checkBill reads a bill of materials and returns the number of its components. Whether it follows the published
// schema, make packages asks the library of CycloneDX.
func checkBill(data []byte) (int, error) {
	var b cyclonedx.BOM
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&b); err != nil {
		return 0, err
	}
	if _, err := d.Token(); err != io.EOF {
		return 0, errors.New("something follows the bill of materials, want one JSON object")
	}
	if b.SpecVersion != cyclonedx.SpecVersion1_6 || b.Components == nil || b.Dependencies == nil ||
		len(*b.Components) == 0 || len(*b.Dependencies) != len(*b.Components)+1 {
		return 0, fmt.Errorf("spec %v: expected 1.6, some components, and one dependency more", b.SpecVersion)
	}
	refs := map[string]bool{}
	for _, c := range *b.Components {
		if refs[c.BOMRef] || c.Version == "" || c.Licenses == nil {
			return 0, fmt.Errorf("%s stands twice, or has no version or no licence", c.BOMRef)
		}
		refs[c.BOMRef] = true
	}
	return len(*b.Components), nil
}
