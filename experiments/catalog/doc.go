// Package catalog knows the public workloads that a user can fetch: what each is, under which licence it stands, where
// its publisher keeps it, and the SHA-256 of every byte that is to arrive. A Getter brings one into a folder of the
// user's, the cache, and Path finds it there again.
//
// The catalogue (catalog.yaml) holds facts about files, never their contents: nothing recorded is part of this
// program, and a file comes from its publisher, at one commit, or from a mirror that keeps the same paths. What
// arrives is taken for the published file only when its hash is the catalogue's.
//
// It is not for reading what was fetched; an Entry's Format names the package that does.
package catalog
