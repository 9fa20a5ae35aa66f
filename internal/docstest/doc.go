// Package docstest follows the recipes of docs/extending.md, so that a page that tells people what to write cannot go
// stale. It has no code for others.
package docstest
