package kernel

// LayerNormEps is added to the variance by LayerNorm.
const LayerNormEps = 1e-5

// LayerNorm sets each row of dst [n, h] to gamma·(x-mean)/sqrt(variance+LayerNormEps) + beta, mean and variance (of
// the population) over that row (Ba et al. 2016, arXiv 1607.06450, eq. 4). dst may be x.
func LayerNorm[T Float](dst, x, gamma, beta []T, n, h int) {
	inUse[T]().layerNorm(dst, x, gamma, beta, n, h)
}

func layerNorm[T Float](dst, x, gamma, beta []T, n, h int) {
	gamma, beta = gamma[:h], beta[:h]
	for i := 0; i < n; i++ {
		s, d := x[i*h:(i+1)*h], dst[i*h:(i+1)*h]
		mean, inv := moments(s)
		for j, v := range s {
			d[j] = gamma[j]*((v-mean)*inv) + beta[j]
		}
	}
}

// moments returns the mean of x and 1/sqrt(variance + LayerNormEps).
func moments[T Float](x []T) (mean, inv T) {
	for _, v := range x {
		mean += v
	}
	mean /= T(len(x))
	var s T
	for _, v := range x {
		s += (v - mean) * (v - mean)
	}
	return mean, 1 / sqrt(s/T(len(x))+LayerNormEps)
}

// LayerNormGrad sets dx [n, h] to the gradient before LayerNorm of x, whose result has gradient dy: with z the
// normalised row and e = gamma·dy, (e − mean(e) − z·mean(e·z))/deviation. dx may be dy.
func LayerNormGrad[T Float](dx, x, gamma, dy []T, n, h int) {
	inUse[T]().layerNormGrad(dx, x, gamma, dy, n, h)
}

func layerNormGrad[T Float](dx, x, gamma, dy []T, n, h int) {
	gamma = gamma[:h]
	for i := range n {
		s, g, d := x[i*h:(i+1)*h], dy[i*h:(i+1)*h], dx[i*h:(i+1)*h]
		mean, inv := moments(s)
		var sum, along T
		for j, v := range s {
			e := gamma[j] * g[j]
			sum += e
			along += e * (v - mean) * inv
		}
		sum /= T(h)
		along /= T(h)
		for j, v := range s {
			d[j] = inv * (gamma[j]*g[j] - sum - (v-mean)*inv*along)
		}
	}
}

// LayerNormGradGamma sets dgamma [h] to the gradient of LayerNorm's gamma, Σ dy·z over the rows of x [n, h]. scratch
// needs at least n·h elements and is overwritten.
func LayerNormGradGamma[T Float](dgamma, x, dy []T, n, h int, scratch []T) {
	inUse[T]().layerNormGradGamma(dgamma, x, dy, n, h, scratch)
}

func layerNormGradGamma[T Float](dgamma, x, dy []T, n, h int, _ []T) {
	dgamma = dgamma[:h]
	clear(dgamma)
	for i := range n {
		s, g := x[i*h:(i+1)*h], dy[i*h:(i+1)*h]
		mean, inv := moments(s)
		for j, v := range s {
			dgamma[j] += g[j] * ((v - mean) * inv)
		}
	}
}
