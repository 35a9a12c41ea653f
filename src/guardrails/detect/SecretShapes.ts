import { dot, isAlphanumeric, isAsciiLetter, isBase64Url, isDigit, isUpper } from "./Characters.ts"

/** A secret that begins with a published prefix. */
export interface SecretShape {
  readonly prefix: string
  readonly isPart: (code: number) => boolean
  /** How many such characters follow the prefix. */
  readonly min: number
  readonly max: number
  /** Matches the part of the secret that counts; everything if it is missing. */
  readonly pattern?: RegExp
  /** True if such a character may not stand before the secret. Otherwise long runs would be read for each prefix in them. */
  readonly isWholeRun?: true
}

const shapes = (prefixes: string, shape: Omit<SecretShape, "prefix">): ReadonlyArray<SecretShape> =>
  prefixes.split(" ").map((prefix) => ({ prefix, ...shape }))

const slash = 0x2f

const isUpperOrDigit = (code: number): boolean => isUpper(code) || isDigit(code)
const isWordCharacter = (code: number): boolean => isAlphanumeric(code) || code === 0x5f
const isBase64UrlOrDot = (code: number): boolean => isBase64Url(code) || code === dot

/** The longest JSON Web Token that is found. */
const maxToken = 8192

export const secretShapes: ReadonlyArray<SecretShape> = [
  // AWS access key ids
  ...shapes("AKIA ASIA ABIA ACCA", { isPart: isUpperOrDigit, min: 16, max: 16 }),
  // GitHub
  ...shapes("ghp_ gho_ ghu_ ghs_ ghr_", { isPart: isAlphanumeric, min: 36, max: 251 }),
  ...shapes("github_pat_", { isPart: isWordCharacter, min: 22, max: 244 }),
  // GitLab
  ...shapes("glpat-", { isPart: isBase64UrlOrDot, min: 20, max: 300, pattern: /^glpat-.*[\w-]/ }),
  // Slack
  ...shapes("xoxa- xoxb- xoxp- xoxr- xoxs- xoxe- xapp-", {
    isPart: isBase64Url,
    min: 10,
    max: 250,
    pattern: /^\D*\d.*/
  }),
  ...shapes("https://hooks.slack.com/", {
    isPart: (code) => isBase64Url(code) || code === slash,
    min: 30,
    max: 200,
    pattern: /^https:\/\/hooks\.slack\.com\/(?:services|workflows|triggers)\/.*/
  }),
  // Google
  ...shapes("AIza", { isPart: isBase64Url, min: 35, max: 35 }),
  // OpenAI, Anthropic, and others that use the same prefix; words have no digit
  ...shapes("sk-", { isPart: isBase64Url, min: 20, max: 256, pattern: /^\D*\d.*/ }),
  // Stripe, and the keys and operator tokens of this gateway
  ...shapes("sk_live_ sk_test_ rk_live_ rk_test_ op_live_", { isPart: isAlphanumeric, min: 16, max: 247 }),
  ...shapes("whsec_", { isPart: isAlphanumeric, min: 24, max: 100 }),
  // npm, PyPI and Hugging Face
  ...shapes("npm_", { isPart: isAlphanumeric, min: 36, max: 36 }),
  ...shapes("pypi-", { isPart: isBase64Url, min: 50, max: 500 }),
  ...shapes("hf_", { isPart: isAlphanumeric, min: 30, max: 60 }),
  // JSON Web Tokens
  ...shapes("eyJ", {
    isPart: isBase64UrlOrDot,
    min: 30,
    max: maxToken - 3,
    isWholeRun: true,
    pattern: /^eyJ[\w-]{5,}\.eyJ[\w-]{5,}\.[\w-]{10,}/
  })
]

const firstCodes: ReadonlySet<number> = new Set(secretShapes.map(({ prefix }) => prefix.charCodeAt(0)))

export const isFirstOfShape = (code: number): boolean => firstCodes.has(code)

/** What may follow the name of an AWS secret access key. */
export const isBetweenNameAndValue = (code: number): boolean => " \t\n\"'`\\:=>".includes(String.fromCharCode(code))

export const isInName = (code: number): boolean => isAsciiLetter(code) || code === 0x5f || code === 0x2d
