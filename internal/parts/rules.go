package main

import (
	"slices"
	"strings"
)

// meeting are packages of others that only code with several goroutines needs, or that call what they are given in
// goroutines of their own.
var meeting = []string{"sync", "sync/atomic", "golang.org/x/sync/errgroup", "net/http", "net/http/httptest"}

// aside are packages of this module that start goroutines which share nothing with their callers. They count for
// themselves alone: traces waits in one for a pipe to be opened, and nearly everything imports traces.
var aside = []string{"clustergym/traces"}

// race returns the packages in whose tests two goroutines can meet: their code or tests start some, share memory, or
// import a package of this module that starts some (internal/par, env/envtest) or hands work to such a one (env/vec).
// The tests of all others run in one goroutine. The race detector watches their code where a package that is listed
// runs it.
func race(pkgs []pkg) []string {
	starting := chosen(pkgs, func(p *pkg) bool { return p.code.starts && !slices.Contains(aside, p.path) })
	handing := chosen(pkgs, func(p *pkg) bool { return overlap(p.code.imports, starting) })
	return chosen(pkgs, func(p *pkg) bool {
		imports := slices.Concat(p.code.imports, p.tests.imports)
		return p.code.starts || p.tests.starts || overlap(imports,
			meeting) || overlap(imports, starting) || overlap(imports, handing)
	})
}

// tagged returns the packages that a build tag changes: a file of theirs, or of a package that their tests link, has
// it.
func tagged(pkgs []pkg, tag string) []string {
	changed := chosen(pkgs, func(p *pkg) bool { return slices.Contains(p.code.tags, tag) })
	for more := -1; more != len(changed); { // what imports those, and so on
		more = len(changed)
		changed = chosen(pkgs, func(p *pkg) bool {
			return slices.Contains(changed, p.path) || overlap(p.code.imports, changed)
		})
	}
	return chosen(pkgs, func(p *pkg) bool {
		return slices.Contains(changed, p.path) || slices.Contains(p.tests.tags, tag) || overlap(p.tests.imports, changed)
	})
}

// ofSystems are the packages of the standard library that are not the same on all systems.
var ofSystems = []string{"syscall", "log/syslog"}

// differing returns the packages in which go vet can find something there that it does not find here: their files
// differ, or they import what is not the same. The types of all others are known from here.
func differing(here, there []pkg) []string {
	code := map[string][]string{}
	tests := map[string][]string{}
	for _, p := range here {
		code[p.path], tests[p.path] = p.code.names, p.tests.names
	}
	changed := chosen(there, func(p *pkg) bool { return !slices.Equal(code[p.path], p.code.names) })
	return chosen(there, func(p *pkg) bool {
		imports := slices.Concat(p.code.imports, p.tests.imports)
		return slices.Contains(changed, p.path) || !slices.Equal(tests[p.path], p.tests.names) ||
			overlap(imports, changed) || overlap(imports, ofSystems) ||
			slices.ContainsFunc(imports, func(i string) bool { return strings.HasPrefix(i, "golang.org/x/sys/") })
	})
}

// chosen returns the paths of the packages that a rule is true of, sorted.
func chosen(pkgs []pkg, rule func(p *pkg) bool) []string {
	var all []string
	for i := range pkgs {
		if rule(&pkgs[i]) {
			all = append(all, pkgs[i].path)
		}
	}
	slices.Sort(all)
	return all
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}
