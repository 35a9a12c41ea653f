import fc from "fast-check"

/** All detectors and two patterns. */
export const allDetectors = {
  detectors: { payment_card: true, iban: true, ip_address: true, secret: true },
  custom_patterns: [
    { name: "EMPLOYEE", pattern: "\\bEMP-?\\d{3,8}\\b" },
    { name: "TICKET", pattern: "(?i)ticket .{1,30}?end|X+$", max_length: 40 }
  ]
}

/** The same without the pattern that matches at the end of any text. */
export const idDetectors = {
  ...allDetectors,
  custom_patterns: [
    allDetectors.custom_patterns[0],
    { name: "TICKET", pattern: "(?i)ticket .{1,30}?end", max_length: 40 }
  ]
}

const of = (alphabet: string, minLength: number, maxLength = minLength): fc.Arbitrary<string> =>
  fc.array(fc.constantFrom(...alphabet), { minLength, maxLength }).map((characters) => characters.join(""))

const digits = "0123456789"
const hex = `${digits}abcdef`
const lower = "abcdefghijklmnopqrstuvwxyz"
const alphanumeric = digits + lower + lower.toUpperCase()
const url = `${alphanumeric}-_`

const prefixed = (prefixes: ReadonlyArray<string>, rest: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc.tuple(fc.constantFrom(...prefixes), rest).map((parts) => parts.join(""))

const bytes = (minLength: number, maxLength: number): fc.Arbitrary<Buffer> =>
  fc.uint8Array({ minLength, maxLength }).map((array) => Buffer.from(array))

const two = (min: number, max: number) => fc.integer({ min, max }).map((value) => String(value).padStart(2, "0"))

const year = fc.integer({ min: 1970, max: 2099 })

/** Ids, encodings, times and numbers that no detector may take for a value. */
export const idShapes: ReadonlyArray<fc.Arbitrary<string>> = [
  prefixed(["resp_", "msg_", "fc_", "rs_", "run_", "batch_", "file-", "req_"], of(hex, 48)),
  prefixed(
    ["call_", "toolu_01", "msg_01", "req_011", "chatcmpl-", "cmpl-", "asst_", "thread_"],
    of(alphanumeric, 24, 29)
  ),
  prefixed(["resp_", "call_", "chatcmpl-"], of(digits, 10, 15)),
  fc.uuid(),
  of(hex, 32),
  of(hex, 40),
  of(hex, 64).map((hash) => `sha256:${hash}`),
  bytes(24, 200).map((random) => random.toString("base64")),
  bytes(24, 200).map((random) => random.toString("base64url")),
  bytes(1, 200).map((random) => `data:image/png;base64,${random.toString("base64")}`),
  fc.date({ min: new Date(0), max: new Date(4e12), noInvalidDate: true }).map((date) => date.toISOString()),
  fc
    .tuple(fc.integer({ min: 1970, max: 2099 }), two(1, 12), two(1, 28), two(0, 23), two(0, 59), two(0, 59))
    .map((parts) => parts.join("")),
  fc.integer({ min: 1_000_000_000, max: 1_999_999_999 }).map(String),
  fc.integer({ min: 1_000_000_000_000, max: 1_999_999_999_999 }).map(String),
  fc
    .tuple(year, two(1, 12), two(1, 28), two(0, 23), two(0, 59))
    .chain(([year, month, day, hour, minute]) =>
      fc.constantFrom(
        `${year}${month}${day}${hour}`,
        `${year}${month}${day}${hour}${minute}`,
        `${year}${month}${day}-${hour}${minute}`,
        `${year}-${month}-${day}-${hour}${minute}`,
        `${year}.${month}.${day}.${hour}.${minute}`,
        `${day}.${month}.${year}-${hour}.${minute}.00`,
        `+${year}-${month}-${day} ${hour}:${minute}:00 started`
      )
    ),
  fc.double({ min: -180, max: 180, noNaN: true }).map((value) => value.toFixed(8)),
  fc.double({ min: 0, max: 1e9, noNaN: true }).map(String),
  fc.float({ min: 0, max: 1000, noNaN: true }).map(String),
  fc.tuple(of("123456789", 1), of(digits, 7), of(digits, 2)).map(([first, rest, cents]) => `$${first}${rest}.${cents}`),
  fc.tuple(of(digits, 1), of(digits, 3), of(digits, 5), of(digits, 1)).map((parts) => `978-${parts.join("-")}`),
  prefixed(["978", "979", "400", "036"], of(digits, 10)),
  fc.tuple(of(digits, 5), of(digits, 5)).map((parts) => parts.join("-")),
  of(digits, 12).map((account) => `arn:aws:iam::${account}:role/x`),
  of(digits, 17, 19),
  fc.array(of(hex, 2), { minLength: 6, maxLength: 9 }).map((groups) => groups.join(":")),
  fc.tuple(fc.constantFrom("Chrome/1", "Edg/1"), two(0, 60)).map((parts) => `${parts.join("")}.0.0.0`),
  fc.tuple(of(digits, 5), of(digits, 4)).map(([build, patch]) => `10.0.${build}.${patch}`)
]

const ids = fc.oneof(...idShapes)

export const secrets: fc.Arbitrary<string> = fc.oneof(
  prefixed(["AKIA", "ASIA"], of(`${digits}ABCDEFGHIJKLMNOPQRSTUVWXYZ`, 16)),
  prefixed(["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], of(alphanumeric, 36)),
  prefixed(["github_pat_"], of(`${alphanumeric}_`, 82)),
  prefixed(["GOCSPX-"], of(url, 28)),
  prefixed(["ya29.a0"], of(url, 60, 200)),
  prefixed(["LTAI5t"], of(alphanumeric, 18)),
  prefixed(["dop_v1_", "doo_v1_", "dor_v1_"], of(hex, 64)),
  prefixed(["dapi"], of(hex, 32)),
  prefixed(["hvs.CAESI"], of(url, 90, 120)),
  prefixed(["pul-", "sbp_"], of(hex, 40)),
  prefixed(["glpat-", "gldt-", "glrt-", "glft-", "glptt-", "glsoat-", "glcbt-"], of(url, 20)),
  prefixed(["dckr_pat_"], of(url, 27)),
  prefixed(["ATATT3xFfGF0", "ATCTT3xFfGN0"], of(`${url}=`, 180)),
  prefixed(["ATBB"], of(alphanumeric, 32)),
  prefixed(["xoxb-1", "xoxp-1", "xoxa-1", "xoxr-1", "xoxs-1"], of(url, 20, 60)),
  fc
    .tuple(of(alphanumeric, 9), of(alphanumeric, 9), of(alphanumeric, 24))
    .map((parts) => `https://hooks.slack.com/services/${parts.join("/")}`),
  fc
    .tuple(fc.constantFrom("discord.com", "discordapp.com"), of(digits, 18, 19), of(url, 68))
    .map(([host, id, token]) => `https://${host}/api/webhooks/${id}/${token}`),
  fc
    .tuple(fc.constantFrom("M", "N", "O"), of(url, 23, 25), of(url, 6), of(url, 27, 38))
    .map(([first, ...parts]) => first + parts.join(".")),
  fc
    .tuple(fc.constantFrom("", "bot"), fc.constantFrom("1", "7"), of(digits, 7, 9), of(url, 33))
    .map(([bot, first, id, rest]) => `${bot}${first}${id}:AA${rest}`),
  prefixed(["AIza"], of(url, 35)),
  prefixed(["gsk_"], of(alphanumeric, 52)),
  prefixed(["xai-"], of(alphanumeric, 80)),
  prefixed(["pplx-"], of(alphanumeric, 48)),
  prefixed(["r8_"], of(alphanumeric, 37)),
  prefixed(["nvapi-"], of(url, 64)),
  fc.tuple(of(hex, 32), of(hex, 10)).map((parts) => `lsv2_pt_${parts.join("_")}`),
  fc.tuple(of(url, 22), of(url, 43)).map((parts) => `SG.${parts.join(".")}`),
  prefixed(["shpat_", "shpca_", "shppa_", "shpss_"], of(hex, 32)),
  prefixed(["lin_api_", "figd_"], of(alphanumeric, 40)),
  prefixed(["ntn_"], of(alphanumeric, 46)),
  fc.tuple(of(alphanumeric, 32), of(hex, 8)).map((parts) => `glsa_${parts.join("_")}`),
  prefixed(["NRAK-"], of(`${digits}ABCDEFGHIJKLMNOPQRSTUVWXYZ`, 27)),
  prefixed(["sntryu_"], of(hex, 64)),
  fc.tuple(of(hex, 24), of(hex, 34)).map((parts) => `PMAK-${parts.join("-")}`),
  prefixed(["AGE-SECRET-KEY-1"], of("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)),
  prefixed(["rubygems_", "sk_"], of(hex, 48)),
  prefixed(["ABSK"], of(`${alphanumeric}+/`, 109, 200)),
  prefixed(["bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t"], of(`${alphanumeric}+/`, 0, 900)),
  prefixed(["AQ.Ab8RN6"], of(url, 44)),
  prefixed(["glagent-1"], of(url, 49)),
  prefixed(["gloas-1"], of(hex, 63)),
  prefixed(["glimt-1"], of(url, 24)),
  prefixed(["GR1348941"], of(url, 20)),
  prefixed(["xwfp-1"], of(url, 20, 60)),
  prefixed(["csk-"], of(digits + lower, 48)),
  prefixed(["tgp_v1_"], of(url, 43)),
  prefixed(["dp.pt."], of(alphanumeric, 43)),
  prefixed(["nfp_"], of(alphanumeric, 40)),
  fc
    .tuple(of(alphanumeric, 3), fc.constantFrom("7Q~", "8Q~"), of(`${url}~.`, 33), of(alphanumeric, 1))
    .map((parts) => parts.join("")),
  prefixed(["sk-1", "sk-proj-1", "sk-ant-api03-"], of(url, 40, 120)),
  prefixed(["sk_live_", "rk_live_", "sk_test_", "rk_test_"], of(alphanumeric, 24, 99)),
  prefixed(["rk_live_"], of(hex, 72)),
  prefixed(["op_live_"], of(hex, 64)),
  prefixed(["npm_"], of(alphanumeric, 36)),
  prefixed(["pypi-AgEIcHlwaS5vcmc"], of(url, 60, 150)),
  prefixed(["hf_"], of(alphanumeric, 34)),
  fc.tuple(of(url, 20, 60), of(url, 20, 200), of(url, 43)).map(([a, b, c]) => `eyJ${a}.eyJ${b}.${c}`)
)

const values = fc.oneof(
  fc.constantFrom(
    "john@example.com",
    "a.b@c.co.uk",
    "иван@пример.рф",
    "123-45-6789",
    "555-123-4567",
    "+1 555 123 4567"
  ),
  fc.constantFrom("(555) 123-4567", "+49 (30) 1234 5678", "4111 1111 1111 1111", "DE89 3704 0044 0532 0130 00"),
  fc.constantFrom("10.1.2.3", "2001:db8::8a2e:370:7334", "EMP-1234", "ticket a b end", "[EMAIL_1]", "[SSN_12]", "XXXX"),
  fc.constantFrom("-----BEGIN PRIVATE KEY-----\n", "-----END PRIVATE KEY-----", `${"Ab1/".repeat(16)}\n`),
  fc.constantFrom("AWS_SECRET_ACCESS_KEY=", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "eyJ", "sk-", "-----"),
  secrets,
  ids
)

/** What is nearly a value, and what stands between values. */
const fragments = fc.oneof(
  fc.constantFrom(" ", "\n", ",", ". ", "@", ".", "-", "+", "(", ")", "[", "]", "_", "=", "/", ":", "x12", "\t", '"'),
  fc.constantFrom(
    "\\",
    "\\\\",
    "\\n",
    "\\\\n",
    "\\u0040",
    "\\\\u0040",
    "\\u00",
    "\\ud835\\udfd3",
    "\\ud835",
    "\\/",
    '\\"'
  ),
  fc.constantFrom(
    "%40",
    "%4",
    "％40",
    "&#64;",
    "&#x40;",
    "&commat;",
    "&#6",
    "&comma",
    "&",
    "＠",
    "﹫",
    "１２３",
    "–",
    "—"
  ),
  fc.constantFrom(
    "\u200b",
    "\u00ad",
    "\ufeff",
    "\u{e0041}",
    "\u{1d7d3}",
    "\u{1f600}",
    "\ud83d",
    "\ude00",
    "\u00a0",
    "٣",
    "é"
  ),
  fc.constantFrom(
    "[EMAIL_",
    "[EMA",
    "[SSN_0]",
    "[PHONE_99999999999]",
    "two@at",
    "a@b",
    "+1 ",
    "555-",
    "12",
    "7",
    "the",
    "a"
  ),
  fc.constantFrom(
    "%3A",
    "%20",
    "%2",
    "\u001b[1m",
    "\u001b[",
    "ext.",
    "ext",
    "/8",
    "-John",
    "SSN",
    "_1",
    "Secret access key | ",
    "[None]: "
  ),
  fc.constantFrom("eyJhbGciOiJ9.", "..", "\n> ", "<br>", "$", "version ", "card/", "ip:", "2026-11-24", "%2B"),
  of(digits, 1, 20),
  of(lower, 1, 80)
)

export const texts: fc.Arbitrary<string> = fc
  .array(fc.oneof(values, fragments, fragments), { maxLength: 20 })
  .map((parts) => parts.join(""))

/** How the values are changed so that a plain search misses them. */
export const disguised: fc.Arbitrary<string> = fc
  .tuple(texts, fc.array(fc.tuple(fc.nat(400), fc.constantFrom("\u200b", "\u00ad", "escape")), { maxLength: 8 }))
  .map(([text, changes]) => {
    const characters = text.split("")
    for (const [place, change] of changes) {
      const character = characters[place]
      if (character === undefined) continue
      const escape = `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`
      characters[place] = change === "escape" ? escape : character + change
    }
    return characters.join("")
  })

/** Cuts a text at these places. */
export const pieces = (text: string, cuts: ReadonlyArray<number>): ReadonlyArray<string> => {
  const places = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].sort((a, b) => a - b)
  return [...places, text.length].map((place, index) => text.slice(places[index - 1] ?? 0, place))
}
