package cli

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"clustergym/nets/kernel"
)

// The linker sets these in releases (-X), which are built without git.
var (
	ReleaseVersion  string
	ReleaseCommit   string
	ReleaseModified string // "true" if the checkout had changes
)

// Build is what gymctl version prints.
type Build struct {
	Version  string `json:"version"`  // of the release; "(devel)" for a build from a checkout
	Commit   string `json:"commit"`   // "" if the build does not know it
	Modified bool   `json:"modified"` // the checkout had uncommitted changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Kernels  string `json:"kernels"` // set of float32 kernels in use
}

// String is what people read, in whole lines.
func (v Build) String() string {
	commit := v.Commit
	if commit == "" {
		commit = "unknown"
	}
	if v.Modified {
		commit += " (modified)"
	}
	return fmt.Sprintf("gymctl   %s\ncommit   %s\ngo       %s %s\nkernels  %s\n", v.Version, commit, v.Go, v.Platform,
		v.Kernels)
}

// About returns what this program was built from.
func About() Build {
	v := Build{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Kernels: kernel.Set()}
	info, ok := debug.ReadBuildInfo()
	v.add(info, ok)
	if ReleaseVersion != "" {
		v.Version = ReleaseVersion
	}
	if ReleaseCommit != "" {
		v.Commit, v.Modified = ReleaseCommit, ReleaseModified == "true"
	}
	return v
}

// add fills in what Go knows of a build.
func (v *Build) add(info *debug.BuildInfo, ok bool) {
	if !ok {
		return
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
}

// Self returns the path of this program.
func Self() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}
