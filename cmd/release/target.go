package main

import (
	"fmt"
	"strings"
)

// target is a platform that gymctl is built for.
type target struct {
	os, arch string   // as Go calls them
	tags     []string // of the wheel, what pip calls the platform
}

// targets are all platforms. The binaries are static, so a wheel for Linux fits glibc and musl alike: manylinux_2_17
// (with its old name manylinux2014) stands for systems since 2012, whose kernels have what the Go runtime calls, Linux
// 3.2. macOS 12 is the oldest that Go 1.26 supports, and the binaries say so themselves, which a check compares.
var targets = []target{
	{"linux", "amd64", []string{"manylinux_2_17_x86_64", "manylinux2014_x86_64", "musllinux_1_1_x86_64"}},
	{"linux", "arm64", []string{"manylinux_2_17_aarch64", "manylinux2014_aarch64", "musllinux_1_1_aarch64"}},
	{"darwin", "arm64", []string{"macosx_12_0_arm64"}},
	{"darwin", "amd64", []string{"macosx_12_0_x86_64"}},
	{"windows", "amd64", []string{"win_amd64"}},
}

func findTarget(name string) (target, error) {
	var names []string
	for _, t := range targets {
		if names = append(names, t.String()); t.String() == name {
			return t, nil
		}
	}
	return target{}, fmt.Errorf("target %q is unknown, want one of %s", name, strings.Join(names, ", "))
}

// String is OS/ARCH.
func (t target) String() string { return t.os + "/" + t.arch }

// binary is the name of the program.
func (t target) binary() string {
	if t.os == "windows" {
		return "gymctl.exe"
	}
	return "gymctl"
}

// folder is the name of an archive without its end, and of the folder in it.
func (t target) folder(version string) string {
	return fmt.Sprintf("gymctl-%s-%s-%s", version, t.os, t.arch)
}

// archive is the file name of the archive: people on Windows have a zip.
func (t target) archive(version string) string {
	if t.os == "windows" {
		return t.folder(version) + ".zip"
	}
	return t.folder(version) + ".tar.gz"
}

// wheel is the file name of the wheel.
func (t target) wheel(version string) string {
	return fmt.Sprintf("clustergym-%s-py3-none-%s.whl", version, strings.Join(t.tags, "."))
}

// settings are the variables that decide what go build makes; nothing of them is left to the machine.
func (t target) settings() []string {
	return []string{
		"GOOS=" + t.os, "GOARCH=" + t.arch, "CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0",
		"GOFLAGS=", "GOEXPERIMENT=", "GOFIPS140=off", "GOWORK=off", "GO111MODULE=on",
	}
}
