// Package docstest holds the documentation against the code: it follows the recipes of docs/guides/extend, so that a
// page that tells people what to write cannot go stale, runs the commands of the README and the tutorial and compares
// their figures, and follows every link. It has no code for others.
package docstest
