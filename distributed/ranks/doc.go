// Package ranks joins processes, on one machine or on many, into a group that trains one agent together. Join is the
// rendezvous: rank 0 listens, the others register with it, and then every pair of ranks has two connections, one for
// data and one for control.
//
// Sums over ranks have the bits of a sum on one machine: they are taken in the order 0, 1, 2, …, whatever comes first.
// A small vector goes to everybody, who adds up for himself. Of a large one rank k adds up piece k and sends the sum to
// all, so that nobody sends more than twice the vector.
//
// A group fails as a whole. A rank that dies, is stopped or cannot be reached is noticed by the silence of its control
// connections, and all others end with an error that names it.
package ranks
