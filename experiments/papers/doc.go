// Package papers lists the experiments that reproduce a paper and runs one by name.
package papers
