package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// licencesName is the file with the licences of all that is linked in.
const licencesName = "THIRD-PARTY-LICENSES.txt"

// module is one that is linked into a binary.
type module struct {
	path, version string
	sum           string   // h1:…, as go.sum has it; "" of the standard library
	licences      []string // identifiers of SPDX, sorted
	texts         []entry  // the files; path is relative to the module
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[sc]e|copying|notice|patents)([-._].*)?$`)

// modules returns what is linked into a binary, by path, with the licences of the modules' own folders and of those of
// the packages that are linked. The standard library is the first. root is the checkout.
func modules(ctx context.Context, root string, t target, binary []byte) ([]module, error) {
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return nil, err
	}
	folders, err := packageFolders(ctx, root, t)
	if err != nil {
		return nil, err
	}
	goroot, err := run(ctx, root, t.settings(), "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	// The packages of golang.org/x inside the standard library are under the licence of Go, too.
	std := module{path: "std", version: strings.TrimPrefix(info.GoVersion, "go")}
	if err := std.read(strings.TrimSpace(string(goroot)), nil); err != nil {
		return nil, err
	}
	all := []module{std}
	for _, d := range info.Deps {
		if d.Replace != nil {
			return nil, fmt.Errorf("%s is replaced by %s: a release is made of what its name says", d.Path, d.Replace.Path)
		}
		f := folders[d.Path]
		if f == nil {
			return nil, fmt.Errorf("%s is in the binary for %s, but not in go list", d.Path, t)
		}
		m := module{path: d.Path, version: d.Version, sum: d.Sum}
		if err := m.read(f.dir, f.packages); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	slices.SortStableFunc(all[1:], func(a, b module) int { return strings.Compare(a.path, b.path) })
	return all, nil
}

// sources are where a module's files are.
type sources struct {
	dir      string
	packages []string // folders of the packages that are linked
}

// packageFolders lists the packages of gymctl by module.
func packageFolders(ctx context.Context, root string, t target) (map[string]*sources, error) {
	said, err := run(ctx, root, t.settings(), "go", "list", "-deps", "-json=Dir,Module", "./cmd/gymctl")
	if err != nil {
		return nil, err
	}
	all := map[string]*sources{}
	for d := json.NewDecoder(bytes.NewReader(said)); ; {
		var p struct {
			Dir    string
			Module *struct{ Path, Dir string }
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if p.Module == nil {
			continue
		}
		m := all[p.Module.Path]
		if m == nil {
			m = &sources{dir: p.Module.Dir}
			all[p.Module.Path] = m
		}
		m.packages = append(m.packages, p.Dir)
	}
}

// read collects the licences of a module from its folder and from those between it and the packages.
func (m *module) read(dir string, packages []string) error {
	seen := map[string]bool{}
	for _, p := range append([]string{dir}, packages...) {
		for ; len(p) >= len(dir) && !seen[p]; p = filepath.Dir(p) {
			seen[p] = true
			files, err := os.ReadDir(p)
			if err != nil {
				return err
			}
			for _, f := range files {
				if !licenceFile.MatchString(f.Name()) || !f.Type().IsRegular() || strings.HasSuffix(f.Name(), ".go") {
					continue
				}
				text, err := os.ReadFile(filepath.Join(p, f.Name()))
				if err != nil {
					return err
				}
				name, err := filepath.Rel(dir, filepath.Join(p, f.Name()))
				if err != nil {
					return err
				}
				m.texts = append(m.texts, entry{path: filepath.ToSlash(name), data: text})
				for _, id := range identify(text) {
					if !slices.Contains(m.licences, id) {
						m.licences = append(m.licences, id)
					}
				}
			}
		}
	}
	m.texts = sorted(m.texts)
	slices.Sort(m.licences)
	if len(m.licences) == 0 {
		return fmt.Errorf("%s %s: no licence is known in its folder: look at it, and teach identify its words", m.path,
			m.version)
	}
	return nil
}

var blanks = regexp.MustCompile(`[\s*#]+`)

// identify returns the licences whose words are in a text, as SPDX calls them; nil for notices and grants of patents.
func identify(text []byte) []string {
	words := strings.ToLower(blanks.ReplaceAllString(string(text), " "))
	var all []string
	has := func(id string, phrases ...string) bool {
		for _, p := range phrases {
			if !strings.Contains(words, p) {
				return false
			}
		}
		all = append(all, id)
		return true
	}
	has("Apache-2.0", "apache license", "version 2.0, january 2004")
	has("MIT", "permission is hereby granted, free of charge", "the software is provided \"as is\"")
	has("MPL-2.0", "mozilla public license version 2.0")
	has("ISC", "permission to use, copy, modify, and/or distribute this software for any purpose")
	has("CC0-1.0", "creative commons", "cc0 1.0 universal")
	has("Unlicense", "this is free and unencumbered software released into the public domain")
	if !has("BSD-3-Clause", "redistribution and use in source and binary forms",
		"endorse or promote products derived from this software") {
		has("BSD-2-Clause", "redistribution and use in source and binary forms")
	}
	return all
}

// licenceTexts is the file licencesName: every licence of every module.
func licenceTexts(all []module) []byte {
	var b bytes.Buffer
	b.WriteString("gymctl contains the following works of others, under these licences.\n")
	for _, m := range all {
		name := m.path + " " + m.version
		if m.path == "std" {
			name = "The standard library of Go " + m.version
		}
		for _, f := range m.texts {
			fmt.Fprintf(&b, "\n%s\n%s\n%s\n\n", strings.Repeat("=", 78), name+": "+f.path, strings.Repeat("=", 78))
			b.Write(bytes.TrimRight(bytes.ReplaceAll(f.data, []byte("\r\n"), []byte("\n")), "\n"))
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

// run runs a program in dir with settings on top of the environment, and returns what it prints.
func run(ctx context.Context, dir string, settings []string, program string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, program, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), settings...)
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, bytes.TrimSpace(said.Bytes()))
	}
	return out, nil
}
