"""Bessel's and Airy's functions, which jax.scipy.special has not, by the rational approximations of Cephes."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

# fmt: off
AMPLITUDE_0 = (
    (0.0007969367292973471, 0.08283523921074408, 1.239533716464143, 5.447250030587687, 8.74716500199817,
     5.303240382353949, 1.0),
    (0.0009244088105588637, 0.08562884743544745, 1.2535274390105895, 5.470977403304171, 8.761908832370695,
     5.306052882353947, 1.0),
)
"""Of order 0 for x > 5, in powers of 25 / x^2: numerator and denominator."""
PHASE_0 = (
    (-0.011366383889846916, -1.2825271867050931, -19.553954425773597, -93.20601521237683, -177.68116798048806,
     -147.07750515495118, -51.41053267665993, -6.050143506007285),
    (64.3178256118178, 856.4300259769806, 3882.4018360540163, 7240.467741956525, 5930.727011873169,
     2062.0933166032783, 242.0057402402914),
)
"""The same of what is 90 degrees apart."""
AMPLITUDE_1 = (
    (0.0007621256162081731, 0.07313970569409176, 1.1271960812968493, 5.112079511468076, 8.424045901417724,
     5.214515986823615, 1.0),
    (0.0005713231280725487, 0.06884559087544954, 1.105142326340617, 5.073863861286015, 8.399855543276042,
     5.209828486823619, 1.0),
)
"""As `AMPLITUDE_0`, of order 1."""
PHASE_1 = (
    (0.05108625947501766, 4.982138729512334, 75.82382841325453, 366.7796093601508, 710.8563049989261,
     597.4896124006136, 211.68875710057213, 25.207020585802372),
    (74.23732770356752, 1056.4488603826283, 4986.410583376536, 9562.318924047562, 7997.041604473507,
     2826.1927851763908, 336.0936078106983),
)
"""As `PHASE_0`, of order 1."""
FIRST_0 = (
    (-4794432209.782018, 1956174919465.5657, -249248344360967.72, 9708622510473064.0),
    (499.563147152651, 173785.4016763747, 48440965.83399621, 11185553704.535683, 2112775201154.892,
     310518229857422.56, 3.1812195594320496e+16, 1.7108629408104315e+18),
)
"""Bessel's J0 for x <= 5, in powers of x^2, without two of its zeros."""
FIRST_1 = (
    (-899971225.7055594, 452228297998.19403, -72749424522181.83, 3682957328638529.0),
    (620.8364781180543, 256987.25675774884, 83514679.14319493, 22151159547.97925, 4749141220799.914,
     784369607876235.9, 8.952223361846274e+16, 5.322786203326801e+18),
)
"""Bessel's J1 / x for x <= 5, in powers of x^2, without two of its zeros."""
SECOND_0 = (
    (15592.436785523574, -14663929.59039716, 5435264770.518765, -982136065717.9115, 87590639439536.7,
     -3466283033847297.0, 4.4273326857256984e+16, -1.8495080043698668e+16),
    (1041.2835366425984, 626107.330137135, 268919633.39381415, 86400248710.3935, 20297961275010.555,
     3171577528429750.5, 2.5059625617265306e+17),
)
"""Bessel's Y0 for x <= 5, in powers of x^2, without its logarithm."""
SECOND_1 = (
    (1263204747.9017804, -647355876379.1603, 114509511541823.73, -8127702555013251.0, 2.024394757135949e+17,
     -7.788771962659501e+17),
    (594.3015923461282, 235564.09294306856, 73481194.44597217, 18760131610.870617, 3882312774962.3857,
     620557727146953.8, 6.871410873553005e+16, 3.9727060811656064e+18),
)
"""Bessel's Y1 / x for x <= 5, in powers of x^2, without its logarithm."""
NEAR_0 = (1.374465435613523e-16, 4.25981614279661e-14, 1.0349695257633842e-11, 1.904516377220209e-09,
     2.5347910790261494e-07, 2.286212103119452e-05, 0.001264615411446926, 0.0359799365153615,
     0.3442898999246285, -0.5353273932339028)
"""The modified K0 for x <= 2, as a series of x^2 - 2, without its logarithm."""
FAR_0 = (5.300433772686263e-18, -1.6475804301524212e-17, 5.2103915050390274e-17, -1.678231096805412e-16,
     5.512055978524319e-16, -1.848593377343779e-15, 6.3400764774050706e-15, -2.2275133269916698e-14,
     8.032890775363575e-14, -2.9800969231727303e-13, 1.140340588208475e-12, -4.514597883373944e-12,
     1.8559491149547177e-11, -7.957489244477107e-11, 3.577397281400301e-10, -1.69753450938906e-09,
     8.574034017414225e-09, -4.660489897687948e-08, 2.766813639445015e-07, -1.8317555227191195e-06,
     1.39498137188765e-05, -0.00012849549581627802, 0.0015698838857300533, -0.0314481013119645,
     2.4403030820659555)
"""The modified K0 for x > 2, as a series of 8 / x - 2, scaled by exp(x)."""
NEAR_1 = (-7.023863479386288e-18, -2.427449850519366e-15, -6.666901694199329e-13, -1.4114883926335278e-10,
     -2.213387630734726e-08, -2.4334061415659684e-06, -0.0001730288957513052, -0.006975723859639864,
     -0.12261118082265715, -0.3531559607765449, 1.5253002273389478)
"""As `NEAR_0`, of order 1 and times x."""
FAR_1 = (-5.756744483665017e-18, 1.7940508731475592e-17, -5.689462558442859e-17, 1.838093544366639e-16,
     -6.057047248373319e-16, 2.038703165624334e-15, -7.019837090418314e-15, 2.4771544244813043e-14,
     -8.976705182324994e-14, 3.3484196660784293e-13, -1.2891739609510289e-12, 5.13963967348173e-12,
     -2.1299678384275683e-11, 9.218315187605006e-11, -4.1903547593418965e-10, 2.015049755197033e-09,
     -1.0345762465678097e-08, 5.7410841254500495e-08, -3.5019606030878126e-07, 2.406484947837217e-06,
     -1.936197974166083e-05, 0.00019521551847135162, -0.002857816859622779, 0.10392373657681724,
     2.7206261904844427)
"""As `FAR_0`, of order 1."""
AIRY = (
    (0.346538101525629, 12.007595273964581, 76.27960536152345, 168.08922493463058, 159.75639135016442,
     70.53609068404442, 14.026469116338967, 1.0),
    (0.5675945326387702, 14.75625625848472, 84.51389701414746, 177.31808814540045, 164.2346928715297,
     71.47784008255756, 14.095913560783403, 1.0),
)
"""Airy's function for large x, in powers of 1 / zeta."""
AIRY_COSINE = (
    (0.01973399320916857, 0.39110302961568827, 1.0657989759959559, 0.9391692298166502, 0.35146565610554764,
     0.06338889196289255, 0.005858041130483885, 0.000282851600836737, 6.98793669997261e-06,
     8.117892395543892e-08, 3.415517847659236e-10),
    (9.30892908077442, 19.835292871831214, 15.564662893286462, 5.476860694229755, 0.9542936116189619,
     0.08645808263523921, 0.004126565238242226, 0.00010125908511650914, 1.1716673321441352e-06,
     4.9183457006293e-09),
)
"""Its cosine for x far below 0, in powers of 1 / zeta^2."""
AIRY_SINE = (
    (-0.1316963234183318, -0.6264565444319123, -0.6931580360369335, -0.2797799815451191, -0.04919001326095003,
     -0.004062659235948854, -0.0001592764962392621, -2.776491081552329e-06, -1.6778769848911465e-08),
    (13.356042070655324, 32.682503279522464, 26.736704094149957, 9.187074029072596, 1.4752914677166642,
     0.11568717379518804, 0.004402916416152112, 7.547203482874142e-05, 4.5185009297058035e-07),
)
"""Its sine."""
# fmt: on


def quotient(numerator: Sequence[float], denominator: Sequence[float], x: jax.Array) -> jax.Array:
    """One polynomial over another, their coefficients with the highest power first."""
    return jnp.polyval(np.array(numerator, x.dtype), x) / jnp.polyval(np.array(denominator, x.dtype), x)


def chebyshev_series(coefficients: Sequence[float], x: jax.Array) -> jax.Array:
    """A Chebyshev series of x in [-2, 2], the coefficient of the highest polynomial first."""
    before = last = jnp.zeros_like(x)
    value = jnp.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        before, last = last, value
        value = x * last - before + coefficient
    return (value - before) / 2


def floats(x: jax.Array) -> jax.Array:
    """Integers and bools as floats."""
    return jnp.asarray(x, jnp.result_type(x, float))


def bessel_j0(x: jax.Array) -> jax.Array:
    """`torch.special.bessel_j0`: Bessel's function of the first kind of order 0."""
    x = jnp.abs(floats(x))
    s, y = jnp.square(x), jnp.maximum(x, 5)
    small = (s - 5.783185962946784) * (s - 30.471262343662087) * quotient(*FIRST_0, s)
    z = 25 / jnp.square(y)
    t = y - jnp.pi / 4
    large = (quotient(*AMPLITUDE_0, z) * jnp.cos(t) - 5 / y * quotient(*PHASE_0, z) * jnp.sin(t)) * jnp.sqrt(
        2 / (jnp.pi * y)
    )
    return jnp.where(x <= 5, small, large)


def bessel_j1(x: jax.Array) -> jax.Array:
    """`torch.special.bessel_j1`: Bessel's function of the first kind of order 1."""
    sign, x = jnp.where(x < 0, -1, 1), jnp.abs(floats(x))
    s, y = jnp.square(x), jnp.maximum(x, 5)
    small = x * (s - 14.681970642123893) * (s - 49.2184563216946) * quotient(*FIRST_1, s)
    z = 25 / jnp.square(y)
    t = y - 3 * jnp.pi / 4
    large = (quotient(*AMPLITUDE_1, z) * jnp.cos(t) - 5 / y * quotient(*PHASE_1, z) * jnp.sin(t)) * jnp.sqrt(
        2 / (jnp.pi * y)
    )
    return sign * jnp.where(x <= 5, small, large)


def bessel_y0(x: jax.Array) -> jax.Array:
    """`torch.special.bessel_y0`: Bessel's function of the second kind of order 0."""
    x = floats(x)
    s, y = jnp.square(x), jnp.maximum(x, 5)
    small = 2 / jnp.pi * jnp.log(x) * bessel_j0(x) + quotient(*SECOND_0, s)
    z = 25 / jnp.square(y)
    t = y - jnp.pi / 4
    large = (quotient(*AMPLITUDE_0, z) * jnp.sin(t) + 5 / y * quotient(*PHASE_0, z) * jnp.cos(t)) * jnp.sqrt(
        2 / (jnp.pi * y)
    )
    return jnp.where(x <= 5, small, large)


def bessel_y1(x: jax.Array) -> jax.Array:
    """`torch.special.bessel_y1`: Bessel's function of the second kind of order 1."""
    x = floats(x)
    s, y = jnp.square(x), jnp.maximum(x, 5)
    small = 2 / jnp.pi * (bessel_j1(x) * jnp.log(x) - 1 / x) + x * quotient(*SECOND_1, s)
    z = 25 / jnp.square(y)
    t = y - 3 * jnp.pi / 4
    large = (quotient(*AMPLITUDE_1, z) * jnp.sin(t) + 5 / y * quotient(*PHASE_1, z) * jnp.cos(t)) * jnp.sqrt(
        2 / (jnp.pi * y)
    )
    return jnp.where(x == 0, -jnp.inf, jnp.where(x <= 5, small, large))


def modified_bessel_k0(x: jax.Array, scaled: bool = False) -> jax.Array:
    """`torch.special.modified_bessel_k0`; `scaled` is times exp(x)."""
    x = floats(x)
    small = jnp.minimum(x, 2)
    low = chebyshev_series(NEAR_0, jnp.square(small) - 2) - jnp.log(small / 2) * jax.scipy.special.i0(small)
    large = jnp.maximum(x, 2)
    high = chebyshev_series(FAR_0, 8 / large - 2) / jnp.sqrt(large)
    if scaled:
        return jnp.where(x == 0, jnp.inf, jnp.where(x <= 2, low * jnp.exp(small), high))
    return jnp.where(x == 0, jnp.inf, jnp.where(x <= 2, low, high * jnp.exp(-large)))


def modified_bessel_k1(x: jax.Array, scaled: bool = False) -> jax.Array:
    """`torch.special.modified_bessel_k1`; `scaled` is times exp(x)."""
    x = floats(x)
    small = jnp.minimum(x, 2)
    low = chebyshev_series(NEAR_1, jnp.square(small) - 2) / small + jnp.log(small / 2) * jax.scipy.special.i1(small)
    large = jnp.maximum(x, 2)
    high = chebyshev_series(FAR_1, 8 / large - 2) / jnp.sqrt(large)
    if scaled:
        return jnp.where(x == 0, jnp.inf, jnp.where(x <= 2, low * jnp.exp(small), high))
    return jnp.where(x == 0, jnp.inf, jnp.where(x <= 2, low, high * jnp.exp(-large)))


def spherical_bessel_j0(x: jax.Array) -> jax.Array:
    """`torch.special.spherical_bessel_j0`: sin(x) / x."""
    x = floats(x)
    return jnp.where(jnp.isinf(x), 0, jnp.sinc(x / jnp.pi))


def airy_ai(x: jax.Array) -> jax.Array:
    """`torch.special.airy_ai`: Airy's function, by its series near 0 and by asymptotic approximations elsewhere."""
    x = floats(x)
    near = jnp.clip(x, -2.09, 2.09)
    f = m = jnp.ones_like(x)
    g = n = near
    for k in range(3, 45, 3):
        m, n = m * near**3 / (k * (k - 1)), n * near**3 / (k * (k + 1))
        f, g = f + m, g + n
    series = 0.3550280538878172 * f - 0.2588194037928068 * g
    y = jnp.maximum(jnp.abs(x), 2.09)
    root, zeta = jnp.sqrt(jnp.sqrt(y)) * jnp.sqrt(jnp.pi), 2 * y * jnp.sqrt(y) / 3
    z = 1 / zeta
    right = quotient(*AIRY, z) / (2 * root * jnp.exp(zeta))
    s, t = jnp.square(z), zeta + jnp.pi / 4
    cosine = z * quotient(*AIRY_COSINE, s)
    sine = 1 + s * quotient(*AIRY_SINE, s)
    left = (jnp.sin(t) * sine - jnp.cos(t) * cosine) / root
    value = jnp.where(x < -2.09, left, jnp.where(x < 2.09, series, right))
    return jnp.where(jnp.isinf(x), jnp.nan, jnp.where(x > 103.892, 0, value))
