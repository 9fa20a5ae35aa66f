//go:build !unix

package clitest

func lowerFiles() {}
