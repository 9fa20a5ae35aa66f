package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// archived is filled by git archive, which puts commit and time between the dollars (.gitattributes): a source archive
// needs no git to know what it is.
//
//go:embed archived.txt
var archived string

// source says what is built.
type source struct {
	version  string    // of the Python package, which is that of all
	commit   string    // "" if nobody knows it
	modified bool      // the checkout has changes that are in no commit
	time     time.Time // of the commit, UTC, whole seconds: the time of every file
}

// epoch is the time of files where no commit is known: the first one that a zip can hold.
var epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

var versionLine = regexp.MustCompile(`(?m)^__version__ = "([0-9]+(?:\.[0-9]+)*(?:(?:a|b|rc)[0-9]+)?)"$`)

// readSource describes the sources in root. $SOURCE_DATE_EPOCH, seconds since 1970, replaces the time of the commit.
func readSource(ctx context.Context, root string) (source, error) {
	path := filepath.Join(root, "python", "src", "clustergym", "_version.py")
	text, err := os.ReadFile(path)
	if err != nil {
		return source{}, err
	}
	m := versionLine.FindSubmatch(text)
	if m == nil {
		return source{}, fmt.Errorf("%s: want a line like __version__ = \"0.1.0\"", path)
	}
	s := source{version: string(m[1]), time: epoch}
	if seconds := ""; strings.Contains(archived, "$") {
		// No git archive wrote this: a checkout, or a copy of one.
		s.commit, seconds, s.modified = fromGit(ctx, root)
		s.setTime(seconds)
	} else {
		s.commit, seconds, _ = strings.Cut(strings.TrimSpace(archived), " ")
		s.setTime(seconds)
	}
	if set := os.Getenv("SOURCE_DATE_EPOCH"); set != "" {
		if !s.setTime(set) {
			return source{}, fmt.Errorf("SOURCE_DATE_EPOCH: got %q, want seconds since 1970, and not before 1980", set)
		}
	}
	return s, nil
}

// setTime sets the time from decimal seconds since 1970, and tells whether a zip can hold it.
func (s *source) setTime(seconds string) bool {
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || n < epoch.Unix() || n >= epoch.AddDate(120, 0, 0).Unix() {
		return false
	}
	s.time = time.Unix(n, 0).UTC()
	return true
}

// fromGit asks git, if there is one and root is a checkout of its own.
func fromGit(ctx context.Context, root string) (commit, seconds string, modified bool) {
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		return "", "", false
	}
	git := func(args ...string) string {
		c := exec.CommandContext(ctx, "git", args...)
		c.Dir = root
		said, err := c.Output()
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(said))
	}
	commit, seconds, _ = strings.Cut(git("log", "-1", "--format=%H %ct"), " ")
	return commit, seconds, commit != "" && git("status", "--porcelain") != ""
}

// errDirty is what a release of a changed checkout ends with.
var errDirty = errors.New(
	"the checkout has changes that are in no commit: commit them, or build with --dirty, which marks the binaries")
