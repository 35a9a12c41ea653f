import {
  colon,
  dot,
  isAlphanumeric,
  isBase64,
  isBase64Url,
  isDigit,
  isHexDigit,
  isUpper,
  percent,
  slash
} from "./lexing/Characters.ts"

/** A secret that begins with a published prefix. */
export interface SecretShape {
  readonly prefix: string
  readonly isPart: (code: number) => boolean
  /** How many such characters follow the prefix. */
  readonly min: number
  readonly max: number
  /** Matches the part of the secret that counts; everything if it is missing. */
  readonly pattern?: RegExp
}

const shapes = (prefixes: string, shape: Omit<SecretShape, "prefix">): ReadonlyArray<SecretShape> =>
  prefixes.split(" ").map((prefix) => ({ prefix, ...shape }))

const isUpperOrDigit = (code: number): boolean => isUpper(code) || isDigit(code)
const isWordCharacter = (code: number): boolean => isAlphanumeric(code) || code === 0x5f
const isBase64UrlOrDot = (code: number): boolean => isBase64Url(code) || code === dot
const isBase64UrlOrEquals = (code: number): boolean => isBase64Url(code) || code === 0x3d

const secretShapes: ReadonlyArray<SecretShape> = [
  // AWS access key ids; the keys themselves are named secrets
  ...shapes("AKIA ASIA ABIA ACCA", { isPart: isUpperOrDigit, min: 16, max: 16 }),
  ...shapes("ABSK", { isPart: isBase64, min: 109, max: 272 }),
  ...shapes("bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t", { isPart: isBase64, min: 0, max: 4096 }),
  // Google
  ...shapes("AIza", { isPart: isBase64Url, min: 35, max: 35 }),
  ...shapes("AQ.Ab8RN6", { isPart: isBase64Url, min: 20, max: 200 }),
  ...shapes("GOCSPX-", { isPart: isBase64Url, min: 28, max: 28 }),
  ...shapes("ya29.", { isPart: isBase64UrlOrDot, min: 20, max: 500, pattern: /^ya29\..*[\w-]/ }),
  // Alibaba, DigitalOcean, Databricks, Vault, Pulumi and Terraform
  ...shapes("LTAI", { isPart: isAlphanumeric, min: 12, max: 20 }),
  ...shapes("dop_v1_ doo_v1_ dor_v1_", { isPart: isHexDigit, min: 64, max: 64 }),
  ...shapes("dapi", { isPart: isHexDigit, min: 32, max: 32 }),
  ...shapes("hvs. hvb.", { isPart: isBase64Url, min: 24, max: 300 }),
  ...shapes("pul-", { isPart: isHexDigit, min: 40, max: 40 }),
  // GitHub
  ...shapes("ghp_ gho_ ghu_ ghs_ ghr_", { isPart: isAlphanumeric, min: 36, max: 251 }),
  ...shapes("github_pat_", { isPart: isWordCharacter, min: 22, max: 244 }),
  // GitLab
  ...shapes("glpat- gldt- glrt- glft- glptt- glsoat- glcbt-", {
    isPart: isBase64UrlOrDot,
    min: 20,
    max: 300,
    pattern: /^gl.*[\w-]/
  }),
  ...shapes("glagent- glrtr- gloas-", { isPart: isBase64Url, min: 20, max: 100, pattern: /^\D*\d.*/ }),
  ...shapes("glimt-", { isPart: isBase64Url, min: 25, max: 25, pattern: /^\D*\d.*/ }),
  ...shapes("GR1348941", { isPart: isBase64Url, min: 20, max: 20 }),
  // Docker and Atlassian
  ...shapes("dckr_pat_ dckr_oat_", { isPart: isBase64Url, min: 27, max: 40 }),
  ...shapes("ATATT3 ATCTT3 ATBB", { isPart: isBase64UrlOrEquals, min: 28, max: 300 }),
  // Slack
  ...shapes("xoxa- xoxb- xoxp- xoxr- xoxs- xoxe- xapp- xwfp-", {
    isPart: isBase64Url,
    min: 10,
    max: 250,
    pattern: /^\D*\d.*/
  }),
  ...shapes("xoxd-", {
    isPart: (code) => isBase64(code) || isBase64Url(code) || code === percent,
    min: 20,
    max: 400,
    pattern: /^\D*\d.*/
  }),
  ...shapes("https://hooks.slack.com/", {
    isPart: (code) => isBase64Url(code) || code === slash,
    min: 30,
    max: 200,
    pattern: /^https:\/\/hooks\.slack\.com\/(?:services|workflows|triggers)\/.*/
  }),
  // Discord
  ...shapes("https://discord.com/api/webhooks/ https://discordapp.com/api/webhooks/", {
    isPart: (code) => isBase64Url(code) || code === slash,
    min: 60,
    max: 120,
    pattern: /^https:.*\/\d{17,20}\/.*/
  }),
  ...shapes("M N O", { isPart: isBase64UrlOrDot, min: 55, max: 75, pattern: /^[\w-]{24,28}\.[\w-]{6}\.[\w-]{27,38}$/ }),
  // Telegram
  ...shapes("bot 1 2 3 4 5 6 7 8 9", {
    isPart: (code) => isBase64Url(code) || code === colon,
    min: 42,
    max: 48,
    pattern: /^(?:bot)?\d{8,12}:[\w-]{35}$/
  }),
  // OpenAI, Anthropic, and others that use the same prefix; names in style sheets have no capitals and no long part with digits
  ...shapes("sk-", {
    isPart: isBase64Url,
    min: 20,
    max: 256,
    pattern:
      /^sk-(?:(?=[^A-Z]{0,256}[A-Z])(?=\D{0,256}\d)|(?:.{0,256}[-_])?(?=[a-z]{0,256}\d)(?=\d{0,256}[a-z])[a-z\d]{16}).{1,256}/
  }),
  // ElevenLabs, Cerebras, Together, Fireworks, Groq, xAI, Perplexity, Replicate, NVIDIA, LangSmith and Pinecone
  ...shapes("sk_", { isPart: isHexDigit, min: 48, max: 48 }),
  ...shapes("csk-", { isPart: isAlphanumeric, min: 48, max: 48 }),
  ...shapes("tgp_v1_", { isPart: isBase64Url, min: 43, max: 43 }),
  ...shapes("fw_", {
    isPart: isAlphanumeric,
    min: 20,
    max: 48,
    pattern: /^fw_(?=\D{0,47}\d)(?=[^A-Z]{0,47}[A-Z]).{1,48}/
  }),
  ...shapes("gsk_", { isPart: isAlphanumeric, min: 40, max: 80 }),
  ...shapes("xai-", { isPart: isAlphanumeric, min: 60, max: 120 }),
  ...shapes("pplx-", { isPart: isAlphanumeric, min: 40, max: 80 }),
  ...shapes("r8_", { isPart: isAlphanumeric, min: 37, max: 37 }),
  ...shapes("nvapi-", { isPart: isBase64Url, min: 60, max: 80 }),
  ...shapes("lsv2_pt_ lsv2_sk_ pcsk_", { isPart: isWordCharacter, min: 40, max: 100 }),
  // Stripe, and the keys and operator tokens of this gateway
  ...shapes("sk_live_ sk_test_ rk_live_ rk_test_ op_live_", { isPart: isAlphanumeric, min: 16, max: 247 }),
  ...shapes("whsec_", { isPart: isAlphanumeric, min: 24, max: 100 }),
  // SendGrid, Shopify, Linear, Notion, Figma, Grafana, New Relic, Sentry, Postman, Supabase and age
  ...shapes("SG.", { isPart: isBase64UrlOrDot, min: 60, max: 70, pattern: /^SG\.[\w-]{16,32}\.[\w-]{40,45}/ }),
  ...shapes("shpat_ shpca_ shppa_ shpss_", { isPart: isHexDigit, min: 32, max: 32 }),
  ...shapes("lin_api_ ntn_ figd_", { isPart: isBase64Url, min: 40, max: 60 }),
  ...shapes("glsa_ glc_", { isPart: isWordCharacter, min: 32, max: 400 }),
  ...shapes("NRAK-", { isPart: isUpperOrDigit, min: 27, max: 27 }),
  ...shapes("sntryu_", { isPart: isHexDigit, min: 64, max: 64 }),
  ...shapes("sntrys_", { isPart: isBase64UrlOrEquals, min: 60, max: 500 }),
  ...shapes("PMAK-", { isPart: isBase64Url, min: 59, max: 59 }),
  ...shapes("sbp_", { isPart: isHexDigit, min: 40, max: 40 }),
  ...shapes("AGE-SECRET-KEY-1", { isPart: isUpperOrDigit, min: 58, max: 58 }),
  // Doppler and Netlify
  ...shapes("dp.pt.", { isPart: isAlphanumeric, min: 40, max: 44 }),
  ...shapes("nfp_", { isPart: isAlphanumeric, min: 36, max: 64 }),
  // npm, RubyGems, PyPI and Hugging Face
  ...shapes("npm_", { isPart: isAlphanumeric, min: 36, max: 36 }),
  ...shapes("rubygems_", { isPart: isHexDigit, min: 48, max: 48 }),
  ...shapes("pypi-", { isPart: isBase64Url, min: 50, max: 500 }),
  ...shapes("hf_", { isPart: isAlphanumeric, min: 30, max: 60 }),
  // session tokens of AWS
  ...shapes("IQoJb3JpZ2lu FwoGZXIvYXdz FQoGZXIvYXdz", { isPart: isBase64, min: 80, max: 4096 })
]

/** The shapes by the code of their first character. */
export const shapesByFirst: ReadonlyMap<number, ReadonlyArray<SecretShape>> = Map.groupBy(secretShapes, ({ prefix }) =>
  prefix.charCodeAt(0)
)
