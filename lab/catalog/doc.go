// Package catalog lists the public workloads that a user can fetch: what each is, its licence, where its publisher
// keeps it, and the SHA-256 of every file. A Getter fetches a workload into a folder, such as the user's cache, and
// Path finds it in the cache.
//
// The catalogue (catalog.yaml) holds facts about files, never their contents: no recorded data is part of this program.
// A file comes from its publisher, at one commit, or from a mirror with the same paths. A fetched file is accepted only
// if its hash equals the catalogue's.
//
// The package does not read fetched files. An Entry's Format names the package that does.
package catalog
