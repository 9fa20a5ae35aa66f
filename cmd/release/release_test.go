package main

import (
	"bytes"
	"crypto/sha256"
	"debug/pe"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// base is a wheel as setuptools makes it, without what is not looked at.
func base() []entry {
	return []entry{
		{path: "clustergym_cli.py", data: []byte("pass\n")},
		{path: "clustergym/__init__.py", data: []byte("pass\n")},
		{path: "clustergym/bin/gymctl", data: []byte("of an editable install")},
		{path: "clustergym-0.1.0.dist-info/METADATA",
			data: []byte(
				"Metadata-Version: 2.4\nName: clustergym\nVersion: 0.1.0\nLicense-Expression: Apache-2.0\n\nText.\n\nMore.\n")},
		{path: "clustergym-0.1.0.dist-info/WHEEL",
			data: []byte("Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")},
		{path: "clustergym-0.1.0.dist-info/entry_points.txt",
			data: []byte("[console_scripts]\ngymctl = clustergym_cli:main\n")},
		{path: "clustergym-0.1.0.dist-info/RECORD", data: nil},
	}
}

func wheelOf(t *testing.T, name string) (target, []entry) {
	t.Helper()
	to, err := findTarget(name)
	if err != nil {
		t.Fatal(err)
	}
	all, err := wheelFor(base(), to, "0.1.0", []byte("program"), []byte("others"), []byte("own"), []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	return to, all
}

func TestWheelsAreWhatTheirNamesSay(t *testing.T) {
	for _, to := range targets {
		_, all := wheelOf(t, to.String())
		packed, err := packWheel(all, epoch)
		if err != nil {
			t.Fatal(err)
		}
		read, err := readZip(packed)
		if err != nil {
			t.Fatal(err)
		}
		got, binary, err := checkWheel(to.wheel("0.1.0"), read)
		if err != nil || got.String() != to.String() || string(binary) != "program" {
			t.Errorf("%s: %v, %q, %v", to, got, binary, err)
		}
		if last := read[len(read)-1].path; last != "clustergym-0.1.0.dist-info/RECORD" {
			t.Errorf("%s: %s is last, want RECORD", to, last)
		}
		metadata := string(find(read, "clustergym-0.1.0.dist-info/METADATA").data)
		if want := "License-File: LICENSE\nLicense-File: THIRD-PARTY-LICENSES.txt\n\nText.\n\nMore.\n"; !strings.HasSuffix(
			metadata, want) {
			t.Errorf("METADATA ends with %q, want %q", metadata, want)
		}
	}
}

func TestFaultsOfWheelsAreNamed(t *testing.T) {
	to, _ := wheelOf(t, "linux/amd64")
	for _, c := range []struct {
		name   string
		change func(all []entry) []entry
		want   string
	}{
		{"a changed file", func(all []entry) []entry { all[0].data = []byte("x"); return all }, "the row says"},
		{"a file without a row", func(all []entry) []entry { return append(all, entry{path: "more.py"}) },
			"no row of more.py"},
		{"a missing file", func(all []entry) []entry { return all[1:] }, "is not in the wheel"},
		{"no RECORD", func(all []entry) []entry { return all[:len(all)-1] }, "no clustergym-0.1.0.dist-info/RECORD"},
		{"a binary that nobody may start", func(all []entry) []entry {
			find(all, "clustergym/bin/gymctl").mode = 0o644
			return all
		}, "mode 644, want 755"},
		{"tags of another platform", func(all []entry) []entry {
			w := find(all, "clustergym-0.1.0.dist-info/WHEEL")
			w.data = bytes.ReplaceAll(w.data, []byte("x86_64"), []byte("aarch64"))
			return again(all)
		}, "want those of the file name"},
		{"another version", func(all []entry) []entry {
			m := find(all, "clustergym-0.1.0.dist-info/METADATA")
			m.data = bytes.ReplaceAll(m.data, []byte("0.1.0"), []byte("0.1.1"))
			return again(all)
		}, `Version ["0.1.1"], want 0.1.0`},
		{"a way out", func(all []entry) []entry {
			return again(slices.Insert(all, 0, entry{path: "../evil.py"}))
		}, "no path inside"},
	} {
		_, all := wheelOf(t, "linux/amd64")
		if _, _, err := checkWheel(to.wheel("0.1.0"), c.change(all)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, _, err := checkWheel("clustergym-0.1.0-py3-none-any.whl", nil); err == nil {
		t.Error("a wheel without a platform is accepted")
	}
}

// again writes RECORD anew.
func again(all []entry) []entry {
	last := len(all) - 1
	return append(all[:last:last], record(all[:last], all[last].path))
}

func TestArchivesDependOnContentsAlone(t *testing.T) {
	files := []entry{{path: "b", data: []byte("2"), mode: 0o755}, {path: "a/", uid: 7}, {path: "a/x", data: []byte("1")}}
	at := time.Date(2026, 3, 4, 5, 6, 8, 0, time.UTC)
	var first, second, other bytes.Buffer
	for b, list := range map[*bytes.Buffer][]entry{&first: files, &second: {files[2], files[0], files[1]}} {
		if err := writeTar(b, list, at); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the order of entries changes a tar")
	}
	got, err := readTar(first.Bytes())
	if err != nil || len(got) != 3 || got[0].path != "a/" || got[0].uid != 7 || got[2].mode != 0o755 ||
		string(got[1].data) != "1" {
		t.Errorf("a tar reads as %v, %v", got, err)
	}
	if err := writeZip(&other, files[2:], at); err != nil {
		t.Fatal(err)
	}
	zone, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Skip(err)
	}
	second.Reset()
	if err := writeZip(&second, files[2:], at.In(zone)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(other.Bytes(), second.Bytes()) {
		t.Error("the zone of the machine changes a zip")
	}
}

func TestLicencesAreKnownByTheirWords(t *testing.T) {
	for text, want := range map[string][]string{
		"Apache License\n  Version 2.0, January 2004\n":                                                                                         {"Apache-2.0"},
		"Permission is hereby granted, free of charge, to any person … THE SOFTWARE IS PROVIDED\n\"AS IS\", WITHOUT":                            {"MIT"},
		"Redistribution and use in source and binary\nforms, with or without … THIS SOFTWARE":                                                   {"BSD-2-Clause"},
		"Redistribution and use in source and binary forms … may be used to endorse or\n * promote products derived from this software without": {"BSD-3-Clause"},
		"Mozilla Public License Version 2.0":                                                                                                    {"MPL-2.0"},
		"This product includes software developed at somebody's office.":                                                                        nil,
	} {
		if got := identify([]byte(text)); !slices.Equal(got, want) {
			t.Errorf("identify(%q) = %q, want %q", text, got, want)
		}
	}
	m := module{path: "example.org/strange", version: "v1"}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "LICENSE"), []byte("Do as I say."), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.read(dir, nil); err == nil ||
		!strings.Contains(err.Error(), "example.org/strange v1: no licence is known") {
		t.Errorf("a licence that nobody knows: %v", err)
	}
}

func TestABillOfMaterialsNamesEveryModule(t *testing.T) {
	s := source{version: "0.1.0", commit: "abc", time: epoch}
	all := []module{
		{path: "std", version: "1.26.8", licences: []string{"BSD-3-Clause"}},
		{path: "example.org/a", version: "v1.0.0+incompatible", sum: "h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
			licences: []string{"Apache-2.0", "MIT"}},
	}
	text, err := billOf(s, targets[0], []byte("program"), all)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := checkBill(text); n != 2 || err != nil {
		t.Errorf("%d components, %v", n, err)
	}
	if _, err := checkBill(append(text[:len(text):len(text)], text...)); err == nil {
		t.Error("two bills in a file pass")
	}
	var b cyclonedx.BOM
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	a := (*b.Components)[1]
	if (*a.Hashes)[0].Value != "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" ||
		a.PackageURL != "pkg:golang/example.org/a@v1.0.0+incompatible" {
		t.Errorf("component %+v", a)
	}
	all[1].sum = "h2:x"
	if _, err := billOf(s, targets[0], nil, all); err == nil {
		t.Error("a sum of another kind is accepted")
	}
}

func TestSourcesAreKnownWithoutGit(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "python", "src", "clustergym", "_version.py")
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("\"\"\"Text.\"\"\"\n\n__version__ = \"1.2.0rc1\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "")
	old := archived
	defer func() { archived = old }()
	for _, c := range []struct {
		archived, epoch string
		want            source
	}{
		{"$Format:%H %ct$\n", "", source{version: "1.2.0rc1", time: epoch}},
		{"0123abcd 1700000000\n", "", source{version: "1.2.0rc1", commit: "0123abcd", time: time.Unix(1700000000, 0).UTC()}},
		{"0123abcd 1700000000\n", "1700000001",
			source{version: "1.2.0rc1", commit: "0123abcd", time: time.Unix(1700000001, 0).UTC()}},
	} {
		archived = c.archived
		t.Setenv("SOURCE_DATE_EPOCH", c.epoch)
		if got, err := readSource(t.Context(), root); got != c.want || err != nil {
			t.Errorf("%q at %q: %+v, %v, want %+v", c.archived, c.epoch, got, err, c.want)
		}
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if _, err := readSource(t.Context(), root); err == nil || !strings.Contains(err.Error(), "SOURCE_DATE_EPOCH") {
		t.Errorf("a time that is none: %v", err)
	}
}

func TestThisRepositoryHasOneVersion(t *testing.T) {
	s, err := readSource(t.Context(), filepath.Join("..", ".."))
	if err != nil || s.version == "" {
		t.Errorf("%+v, %v", s, err)
	}
	setup, err := os.ReadFile(filepath.Join("..", "..", "python", "setup.py"))
	if err != nil {
		t.Fatal(err)
	}
	// pip install from a checkout gives the same names.
	for _, want := range []string{`f"manylinux_2_17_{cpu}.manylinux2014_{cpu}.musllinux_1_1_{cpu}"`, `"macosx_12_0_"`,
		`"x86_64": "win_amd64"`} {
		if !bytes.Contains(setup, []byte(want)) {
			t.Errorf("setup.py has no %s", want)
		}
	}
}

func TestABinaryIsHeldAgainstItsTarget(t *testing.T) {
	dir := t.TempDir()
	main := filepath.Join(dir, "main.go")
	if err := os.WriteFile(main, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if testing.Short() {
		t.Skip("compiles the runtime for each platform")
	}
	built := map[string][]byte{}
	for _, to := range targets {
		out := filepath.Join(dir, "program")
		c := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", out, main)
		c.Env = append(os.Environ(), to.settings()...)
		if said, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", to, err, said)
		}
		data, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		built[to.String()] = data
	}
	for _, to := range targets {
		for name, data := range built {
			if err := checkBinary(to, data); (err == nil) != (name == to.String()) {
				t.Errorf("the binary for %s as one for %s: %v", name, to, err)
			}
		}
	}
	for _, check := range []func(target, []byte) error{checkELF, checkMachO, checkPE} {
		if err := check(targets[0], []byte("#!/bin/sh\n")); err == nil {
			t.Error("a script is accepted")
		}
	}
	older := targets[2]
	older.tags = []string{"macosx_11_0_arm64"}
	if err := checkMachO(older, built["darwin/arm64"]); err == nil || !strings.Contains(err.Error(), "macosx_12_0_") {
		t.Errorf("a tag that promises more than the binary: %v", err)
	}
}

func TestAForwarderIsADLL(t *testing.T) {
	f, err := pe.NewFile(bytes.NewReader(forwarder("a.dll", "Function", "b.Other")))
	if err != nil {
		t.Fatal(err)
	}
	data, err := f.Sections[0].Data()
	if err != nil || f.Characteristics&pe.IMAGE_FILE_DLL == 0 {
		t.Fatalf("characteristics %#x, %v", f.Characteristics, err)
	}
	for _, want := range []string{"a.dll\x00", "Function\x00", "b.Other\x00"} {
		if !bytes.Contains(data, []byte(want)) {
			t.Errorf("no %q in the exports", want)
		}
	}
}

func TestWhatTheContainerIsMadeOf(t *testing.T) {
	var b bytes.Buffer
	if err := writeTar(&b, rootFS([]byte("program"), []byte("x"), []byte("y")), epoch); err != nil {
		t.Fatal(err)
	}
	all, err := readTar(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	data, passwd := find(all, "data/"), find(all, "etc/passwd")
	if data == nil || data.uid != 65532 || passwd == nil ||
		!bytes.Contains(passwd.data, []byte("nonroot:x:65532:65532:")) {
		t.Errorf("data %+v, users %+v", data, passwd)
	}
	text := string(containerfile)
	// What it copies is what a release writes, and nothing runs while it is built: any tool can make it for any processor.
	for _, want := range []string{"ARG BASE=scratch\n", "ADD rootfs-${TARGETARCH}.tar.gz /\n", "USER 65532:65532\n",
		"WORKDIR /data\n", `ENTRYPOINT ["/usr/bin/gymctl"]`} {
		if !strings.Contains(text, want) {
			t.Errorf("Containerfile has no %q", want)
		}
	}
	if strings.Contains(text, "\nRUN ") {
		t.Error("Containerfile runs something, and has no shell")
	}
}

func TestMistakesAreSaidInASentence(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "usage:"},
		{[]string{"publish"}, `unknown verb "publish"`},
		{[]string{"build", "--only", "debs", "--base", "x"}, `--only: got "debs", want wheels or archives`},
		{[]string{"build"}, "--base: want the wheel"},
		{[]string{"build", "--base", "x", "--targets", "plan9/amd64"},
			`target "plan9/amd64" is unknown, want one of linux/amd64`},
		{[]string{"check", t.TempDir()}, sumsName},
	} {
		if err := execute(t.Context(), c.args, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.args, err, c.want)
		}
	}
}

// bill writes a bill of materials, the smallest file of a release, into dir, and returns its name.
func bill(t *testing.T, dir string, to target) string {
	t.Helper()
	text, err := billOf(source{version: "0.1.0", time: epoch}, to, nil,
		[]module{{path: "a", version: "v1", licences: []string{"MIT"}}})
	if err != nil {
		t.Fatal(err)
	}
	name := to.folder("0.1.0") + ".cdx.json"
	if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// sumOf returns the line of a file.
func sumOf(t *testing.T, dir, name string) sumLine {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	return sumLine{hex.EncodeToString(sum[:]), name}
}

func TestEveryFileOfAReleaseIsHeldAgainstItsSum(t *testing.T) {
	dir := t.TempDir()
	check := func(want string, sums ...sumLine) {
		t.Helper()
		if err := writeSums(dir, sums, nil); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err := execute(t.Context(), []string{"check", dir}, &out)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %s, want %q", err, out.String(), want)
		}
	}
	first, second := bill(t, dir, targets[0]), bill(t, dir, targets[1])
	a, b := sumOf(t, dir, first), sumOf(t, dir, second)
	check("", a, b)
	check("lists no file")
	check(second+": SHA256SUMS does not list it", a)
	check("the checksum is", a, sumLine{a.sum, second})
	check("no line of sum and file name", a, b, sumLine{a.sum, "../" + first})
}

func TestChecksumsOfOlderFilesStay(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"new", "kept"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeSums(dir, []sumLine{{"2", "new"}}, []sumLine{{"1", "new"}, {"3", "kept"}, {"4", "gone"}}); err != nil {
		t.Fatal(err)
	}
	if got, err := readSums(dir); err != nil || !slices.Equal(got, []sumLine{{"2", "new"}, {"3", "kept"}}) {
		t.Errorf("got %v, %v", got, err)
	}
}
