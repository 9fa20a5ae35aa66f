package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"clustergym/nets/kernel"
)

// The linker sets these in releases (-X), which are built without git.
var (
	releaseVersion  string
	releaseCommit   string
	releaseModified string // "true" if the checkout had changes
)

// build is what gymctl version prints.
type build struct {
	Version  string `json:"version"`  // of the release; "(devel)" for a build from a checkout
	Commit   string `json:"commit"`   // "" if the build does not know it
	Modified bool   `json:"modified"` // the checkout had uncommitted changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Kernels  string `json:"kernels"` // set of float32 kernels in use
}

func versionVerb(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Print version, commit, Go version and the float32 kernels in use",
		Long: `version prints what a result was made with. Kernel sets differ in the last bits of their results; everything else
being equal, results of the same set are equal byte for byte.`,
		Example: `  gymctl version
  gymctl version --json`,
		Args: args(0, 0, "flags only"),
		RunE: func(*cobra.Command, []string) error {
			v := about()
			if asJSON {
				return a.json(v)
			}
			a.printf("%s", v)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
}

// String is what people read, in whole lines.
func (v build) String() string {
	commit := v.Commit
	if commit == "" {
		commit = "unknown"
	}
	if v.Modified {
		commit += " (modified)"
	}
	return fmt.Sprintf("gymctl   %s\ncommit   %s\ngo       %s %s\nkernels  %s\n", v.Version, commit, v.Go, v.Platform, v.Kernels)
}

func about() build {
	v := build{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Kernels: kernel.Set()}
	info, ok := debug.ReadBuildInfo()
	v.add(info, ok)
	if releaseVersion != "" {
		v.Version = releaseVersion
	}
	if releaseCommit != "" {
		v.Commit, v.Modified = releaseCommit, releaseModified == "true"
	}
	return v
}

// add fills in what Go knows of a build.
func (v *build) add(info *debug.BuildInfo, ok bool) {
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
