package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A wheel is a zip with a folder NAME-VERSION.dist-info; the binary distribution format of Python's packaging guide
// says what is in it. The base wheel comes from setuptools and holds the Python package without gymctl.

// wheelFor returns the entries of the wheel for a target: those of the base wheel, the binary, the licences and the
// bill of materials (where PEP 770 puts it), with WHEEL and RECORD written anew. RECORD is last.
func wheelFor(base []entry, t target, version string, binary, licences, own, sbom []byte) ([]entry, error) {
	info := "clustergym-" + version + ".dist-info/"
	for _, name := range []string{"METADATA", "WHEEL", "RECORD"} {
		if find(base, info+name) == nil {
			return nil, fmt.Errorf("the base wheel has no %s%s: it belongs to another version, or is no wheel", info, name)
		}
	}
	var all []entry
	for _, e := range base {
		switch {
		case e.path == info+"WHEEL" || e.path == info+"RECORD" || strings.HasSuffix(e.path, "/"):
			continue
		case strings.HasPrefix(e.path, "clustergym/bin/"):
			continue // an editable install left a binary of this machine among the sources
		case e.path == info+"METADATA":
			e.data = withLicences(e.data, "LICENSE", licencesName)
		}
		all = append(all, entry{path: e.path, data: e.data})
	}
	add := func(e entry) {
		all = append(slices.DeleteFunc(all, func(old entry) bool { return old.path == e.path }), e)
	}
	add(entry{path: "clustergym/bin/" + t.binary(), data: binary, mode: 0o755})
	add(entry{path: info + "licenses/LICENSE", data: own})
	add(entry{path: info + "licenses/" + licencesName, data: licences})
	add(entry{path: info + "sboms/gymctl.cdx.json", data: sbom})
	var b strings.Builder
	b.WriteString("Wheel-Version: 1.0\nGenerator: clustergym-release (1)\nRoot-Is-Purelib: false\n")
	for _, tag := range t.tags {
		fmt.Fprintf(&b, "Tag: py3-none-%s\n", tag)
	}
	add(entry{path: info + "WHEEL", data: []byte(b.String())})
	all = sorted(all)
	// What describes the package stands at the end, where readers look first.
	about := func(e entry) bool { return strings.HasPrefix(e.path, info) }
	others := slices.DeleteFunc(slices.Clone(all), about)
	all = append(others, slices.DeleteFunc(all, func(e entry) bool { return !about(e) })...)
	return append(all, record(all, info+"RECORD")), nil
}

// withLicences adds lines License-File to the head of METADATA where they are missing.
func withLicences(metadata []byte, names ...string) []byte {
	head, body, _ := bytes.Cut(metadata, []byte("\n\n"))
	for _, n := range names {
		line := []byte("License-File: " + n)
		if !slices.ContainsFunc(bytes.Split(head, []byte("\n")), func(l []byte) bool { return bytes.Equal(l, line) }) {
			head = slices.Concat(head, []byte("\n"), line)
		}
	}
	return slices.Concat(head, []byte("\n\n"), body)
}

// record returns RECORD: path, hash and size of every entry, and itself without them.
func record(entries []entry, path string) entry {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	for _, e := range entries {
		_ = w.Write([]string{e.path, digest(e.data), strconv.Itoa(len(e.data))}) // a buffer takes all
	}
	_ = w.Write([]string{path, "", ""})
	w.Flush()
	return entry{path: path, data: b.Bytes()}
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256=" + base64.RawURLEncoding.EncodeToString(sum[:])
}

// checkWheel checks a wheel as pip and an index do, and returns its target and the binary inside.
func checkWheel(name string, entries []entry) (target, []byte, error) {
	version, t, err := wheelName(name)
	if err != nil {
		return t, nil, err
	}
	info := "clustergym-" + version + ".dist-info/"
	if err := checkRecord(entries, info+"RECORD"); err != nil {
		return t, nil, err
	}
	wheel, metadata := find(entries, info+"WHEEL"), find(entries, info+"METADATA")
	if wheel == nil || metadata == nil {
		return t, nil, fmt.Errorf("want %sWHEEL and %sMETADATA", info, info)
	}
	h := headers(wheel.data)
	var tags []string
	for _, tag := range t.tags {
		tags = append(tags, "py3-none-"+tag)
	}
	if got := h["Tag"]; !slices.Equal(got, tags) {
		return t, nil, fmt.Errorf("WHEEL: tags %q, want those of the file name, %q", got, tags)
	}
	if got := h["Root-Is-Purelib"]; !slices.Equal(got, []string{"false"}) {
		return t, nil, fmt.Errorf("WHEEL: Root-Is-Purelib %q, want false", got)
	}
	m := headers(metadata.data)
	for _, want := range [][2]string{{"Name", "clustergym"}, {"Version", version}, {"License-Expression", "Apache-2.0"}} {
		if got := m[want[0]]; !slices.Equal(got, want[1:]) {
			return t, nil, fmt.Errorf("METADATA: %s %q, want %s", want[0], got, want[1])
		}
	}
	for _, f := range m["License-File"] {
		if find(entries, info+"licenses/"+f) == nil {
			return t, nil, fmt.Errorf("METADATA: License-File %s is not in %slicenses", f, info)
		}
	}
	for _, e := range entries {
		if strings.HasPrefix(e.path, "/") || path.Clean(e.path) != e.path || strings.HasPrefix(e.path, "..") {
			return t, nil, fmt.Errorf("%q is no path inside the package", e.path)
		}
	}
	binary := find(entries, "clustergym/bin/"+t.binary())
	switch {
	case binary == nil:
		return t, nil, fmt.Errorf("no clustergym/bin/%s", t.binary())
	case binary.mode != 0o755:
		return t, nil, fmt.Errorf("%s has mode %o, want 755", binary.path, binary.mode)
	case find(entries, "clustergym_cli.py") == nil || find(entries, "clustergym/__init__.py") == nil:
		return t, nil, errors.New("the Python package is not in it")
	}
	return t, binary.data, nil
}

// wheelName splits the file name of a wheel.
func wheelName(name string) (string, target, error) {
	version, _, _ := strings.Cut(strings.TrimPrefix(name, "clustergym-"), "-")
	for _, t := range targets {
		if t.wheel(version) == name {
			return version, t, nil
		}
	}
	return "", target{}, errors.New("the name is none of a wheel of this project")
}

func checkRecord(entries []entry, at string) error {
	r := find(entries, at)
	if r == nil {
		return fmt.Errorf("no %s", at)
	}
	rows, err := csv.NewReader(bytes.NewReader(r.data)).ReadAll()
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	listed := map[string]bool{}
	for _, row := range rows {
		if len(row) != 3 || listed[row[0]] {
			return fmt.Errorf("%s: row %q is wrong or stands twice", at, row)
		}
		listed[row[0]] = true
		e := find(entries, row[0])
		if e == nil {
			return fmt.Errorf("%s: %s is not in the wheel", at, row[0])
		}
		if row[0] == at {
			continue
		}
		if want := digest(e.data); row[1] != want || row[2] != strconv.Itoa(len(e.data)) {
			return fmt.Errorf("%s: %s has %s and %d bytes, the row says %s and %s", at, e.path, want, len(e.data), row[1],
				row[2])
		}
	}
	for _, e := range entries {
		if !listed[e.path] {
			return fmt.Errorf("%s: no row of %s", at, e.path)
		}
	}
	return nil
}

// headers reads the lines Key: value before the first empty one.
func headers(text []byte) map[string][]string {
	all := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		key, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ": ")
		if !ok {
			if strings.TrimSpace(line) == "" {
				break
			}
			continue
		}
		all[key] = append(all[key], value)
	}
	return all
}

// packWheel writes a wheel.
func packWheel(entries []entry, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	err := writeZip(&b, entries, at)
	return b.Bytes(), err
}
