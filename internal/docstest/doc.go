// Package docstest holds the documentation against the code: it follows the recipes of docs/guides/extend, so that a page
// that tells people what to write cannot go stale, and every link of the pages. It has no code for others.
package docstest
