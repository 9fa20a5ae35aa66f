//go:build !unix

package main

func lowerFiles() {}
