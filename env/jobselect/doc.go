// Package jobselect puts JobSelect-v1 together: an agent that decides which of K visible jobs starts now, or
// waits, while a heuristic picks the GPUs closest to each other. It is the decision process of TopDRL (Ayadi et
// al., JPDC 204, 2025), reconstructed from the paper's abstract and from the code of its precursor (Deng et
// al., Canadian AI 2024); Page prints what it is in full.
package jobselect
