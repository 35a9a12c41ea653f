import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import fc from "fast-check"
import { DetectorSet } from "../../../src/guardrails/detect/DetectorSet.ts"
import { scan } from "../../../src/guardrails/detect/Scanner.ts"
import { allDetectors, idDetectors, idShapes, secrets } from "./Texts.ts"

const valuesIn = (config: Readonly<Record<string, unknown>>, text: string) =>
  scan(Result.getOrThrow(DetectorSet.of(config)), "plain", text).flatMap((segment) =>
    segment._tag === "Found" ? [`${segment.kind} ${segment.raw}`] : []
  )

describe("payment cards", () => {
  it.each([
    ["4111 1111 1111 1111 and 4111-1111-1111-1111.", ["4111 1111 1111 1111", "4111-1111-1111-1111"]],
    [
      "card:5555555555554444, 378282246310005 or 3782 822463 10005",
      ["5555555555554444", "378282246310005", "3782 822463 10005"]
    ],
    ["1 4111 1111 1111 1111 123", ["4111 1111 1111 1111"]],
    ["４１１１ １１１１ １１１１ １１１１", ["４１１１ １１１１ １１１１ １１１１"]],
    ["4111 1111 1111 1112 and 4111 1111-1111 1111", []],
    ["a4111111111111111 41111111111111111111 4111111111111111b", []],
    ["9111 1111 1111 1111", []],
    ["4111111111111111/12/27 card/4111111111111111", ["4111111111111111", "4111111111111111"]],
    ["_4111111111111111_ %3A4111111111111111 card_4111111111111111", Array(3).fill("4111111111111111")],
    ["card 4111111111111111110, pan: 4222222222222", ["4111111111111111110", "4222222222222"]],
    ['{"lat":56.5716242958888} 4.4111111111111111 4111111111111111.5', []],
    ["x4111 1111 1111 1111 4111-1111-1111-1111x", ["4111 1111 1111 1111", "4111-1111-1111-1111"]],
    ["%B4111111111111111^DOE/JOHN^27121010000000000000?", ["4111111111111111"]],
    ["4111111111111111110 4222222222222 id_4111111111111111 /orders/4111111111111111/items", []]
  ])("%s", (text, cards) =>
    assert.deepStrictEqual(
      valuesIn({ detectors: { payment_card: true } }, text),
      cards.map((card) => `CARD ${card}`)
    )
  )
})

describe("bank accounts", () => {
  it.each([
    ["IBAN DE89 3704 0044 0532 0130 00.", ["DE89 3704 0044 0532 0130 00"]],
    ["GB29NWBK60161331926819, nl91abna0417164300", ["GB29NWBK60161331926819", "nl91abna0417164300"]],
    ["NO93-8601-1117-947", ["NO93-8601-1117-947"]],
    ["DE88 3704 0044 0532 0130 00, DE89 3704 0044 0532 0130 0", []],
    [
      "IBAN/DE89370400440532013000 _DE89370400440532013000_ iban_DE89370400440532013000",
      Array(3).fill("DE89370400440532013000")
    ],
    ["DE89370400440532013000/John x1/DE89370400440532013000 id_DE89370400440532013000", ["DE89370400440532013000"]],
    ["XX89370400440532013000 aDE89370400440532013000 DE893704004405320130001", []]
  ])("%s", (text, accounts) =>
    assert.deepStrictEqual(
      valuesIn({ detectors: { iban: true } }, text),
      accounts.map((account) => `IBAN ${account}`)
    )
  )
})

describe("IP addresses", () => {
  it.each([
    ["at 10.0.0.1, http://192.168.100.200:8080/x and 10.0.0.0/8.", ["10.0.0.1", "192.168.100.200", "10.0.0.0"]],
    [
      "2001:db8::8a2e:370:7334, [fe80::1]:443 and ::ffff:10.0.0.1.",
      ["2001:db8::8a2e:370:7334", "fe80::1", "::ffff:10.0.0.1"]
    ],
    ["2001:0db8:0000:0000:0000:ff00:0042:8329", ["2001:0db8:0000:0000:0000:ff00:0042:8329"]],
    ["IP:10.0.0.1", ["10.0.0.1"]],
    ["_10.1.2.3_ %3A10.1.2.3 \u001b[1m10.1.2.3\u001b[0m", ["10.1.2.3", "10.1.2.3", "10.1.2.3"]],
    ["ip:2001:db8::8a2e:370:7334 client:2001:db8::1", ["2001:db8::8a2e:370:7334", "2001:db8::1"]],
    ['version 10.14.24.172, v8.1.4.1, Version: 8.1.4.1, "version":"8.1.4.1", release 8.1.4.1, ~8.1.4.1', []],
    ["Chrome/120.0.0.0 std::vector<a2::b> 00:1a:2b:3c:4d:5e:6f:70 1a::2b face2::b", []],
    ["1.2.3, 1.2.3.4.5, v1.2.3.4, 1.2.3.4-beta, lib-1.2.3.4, lib_1.2.3.4, 1.2.3.4to 1.2.3.4_x", []],
    ["lib-v10.1.2.3, 10.1.2.3-beta 10.1.2.3-rc1 10.1.2.3b1 10.1.2.3.4 x1.10.1.2.3 a__1.2.3.4", []],
    ["IP10.1.2.3 T10.1.2.3 IP8.8.8.8 10.1.2.3to", ["10.1.2.3", "10.1.2.3", "8.8.8.8", "10.1.2.3"]],
    [
      "10.1.2.3-web web-10.1.2.3 10.1.2.3_x ip_10.1.2.3 host-203.0.113.7",
      [...Array(4).fill("10.1.2.3"), "203.0.113.7"]
    ],
    ["ssh -v 10.1.2.3 and curl -v 8.1.2.3/x", ["10.1.2.3", "8.1.2.3"]],
    ["_2001:db8::1_ 10.1.2.3-10.1.2.9", ["2001:db8::1", "10.1.2.3", "10.1.2.9"]],
    ["127.0.0.1, 127.1.2.3, 0.0.0.0, ::1, ::, 0:0:0:0:0:0:0:1", []],
    ["256.1.1.1, 1.2.3.999, 10:20:30, a::b, std::vector, 00:1a:2b:3c:4d:5e", []]
  ])("%s", (text, addresses) =>
    assert.deepStrictEqual(
      valuesIn({ detectors: { ip_address: true } }, text),
      addresses.map((address) => `IP ${address}`)
    )
  )
})

describe("secrets", () => {
  it("of every published shape are found whole, in prose, quotes and URLs", () => {
    fc.assert(
      fc.property(secrets, fc.constantFrom(" ", '"', "'", "\n", "=", ":", "("), (secret, before) => {
        assert.deepStrictEqual(valuesIn(allDetectors, `key${before}${secret}" is mine`), [`SECRET ${secret}`])
      }),
      { numRuns: 2000 }
    )
  })

  it("are keys of AWS where their name stands before them", () => {
    const key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
    for (const name of [
      "aws_secret_access_key = ",
      "AWS_SECRET_ACCESS_KEY=",
      '"SecretAccessKey": "',
      "awsSecretKey: '"
    ]) {
      assert.deepStrictEqual(valuesIn({ detectors: { secret: true } }, name + key), [`SECRET ${key}`])
    }
    assert.deepStrictEqual(valuesIn({ detectors: { secret: true } }, `access key = ${key}`), [])
    assert.deepStrictEqual(valuesIn({ detectors: { secret: true } }, `secret_access_key=${key}a`), [])
  })

  it("are keys of Azure where their name stands before them", () => {
    const account = `${"aB3/".repeat(21)}+z==`
    const shared = `${"aB3/".repeat(10)}+zQ=`
    const found = (text: string) => valuesIn({ detectors: { secret: true } }, text)
    assert.deepStrictEqual(found(`AccountName=a;AccountKey=${account};EndpointSuffix=x`), [`SECRET ${account}`])
    assert.deepStrictEqual(found(`SharedAccessKeyName=Root;SharedAccessKey=${shared}`), [`SECRET ${shared}`])
    assert.deepStrictEqual(found(`"accountKey": "${account}"`), [`SECRET ${account}`])
    for (const text of [
      `Key=${account}`,
      `AccountKey=${account.slice(1)}`,
      `AccountKey=a${account}`,
      `AccountKey=${account.slice(0, -1)}`
    ])
      assert.deepStrictEqual(found(text), [])
  })

  it.each([
    "Secret access key: KEY",
    "| Secret access key | KEY |",
    "aws_secret = KEY",
    "AWS Secret Access Key [None]: KEY",
    "AWS Secret Access Key [****************ABCD]: KEY",
    "the secret access key is KEY"
  ])("are keys of AWS in tables, prose and prompts: %s", (text) => {
    const key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
    const found = (text: string) => valuesIn({ detectors: { secret: true } }, text)
    assert.deepStrictEqual(found(text.replace("KEY", key)), [`SECRET ${key}`])
    assert.deepStrictEqual(found(text.replace("KEY", `${key}/`)), [])
  })

  const signed = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.c2lnbmF0dXJlX2hlcmU"
  const encrypted = `eyJhbGciOiJSU0EtT0FFUCJ9.${"OKOawDo13g".repeat(34)}.48V1_ALb6US04U3b.5eym8TW_c8SuK0lt.XFBoMYUZodetZdvTiFvSkQ`
  it.each([
    ["a token after a dash", `x-${signed} y`, signed],
    ["a token after dots", `Bearer ...${signed}. y`, signed],
    ["an encrypted token", `x ${encrypted} y`, encrypted],
    [
      "an encrypted token without a key",
      "eyJhbGciOiJkaXIifQ..48V1_ALb6US04U3b.5eym8TW.XFBoMYUZodetZdvTiFvSkQ",
      undefined
    ],
    ["a session token of AWS", `x=IQoJb3JpZ2lu${"X2Vj/+".repeat(60)}== y`, `IQoJb3JpZ2lu${"X2Vj/+".repeat(60)}==`],
    ["a cookie of Slack", "d=xoxd-abc%2Fdef%2Bghi1234567890%3D%3D; y", "xoxd-abc%2Fdef%2Bghi1234567890%3D%3D"],
    ["a key of Fireworks", "x fw_3ZTQjb6r8xKpLmN2vYwQs9 y", "fw_3ZTQjb6r8xKpLmN2vYwQs9"],
    ["a key in Markdown", `_ghp_${"a1B2".repeat(9)}_`, `ghp_${"a1B2".repeat(9)}`],
    ["a key before a name", `ghp_${"a1B2".repeat(9)}_backup`, `ghp_${"a1B2".repeat(9)}`],
    ["a key of AWS before a name", "AKIAIOSFODNN7EXAMPLE_prod", "AKIAIOSFODNN7EXAMPLE"],
    ["a key of Google before a name", `AIza${"a1B2_".repeat(7)}_x y`, `AIza${"a1B2_".repeat(7)}`],
    ["a key after a percent escape", `%3Dghp_${"a1B2".repeat(9)}`, `ghp_${"a1B2".repeat(9)}`]
  ])("are %s", (_, text, secret = text) =>
    assert.deepStrictEqual(valuesIn({ detectors: { secret: true } }, text), [`SECRET ${secret}`])
  )

  it.each([
    ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9 and eyJhbGciOiJIUzI1NiJ9.a.b.c.d"],
    [`a${signed} IQoJb3JpZ2luX2Vj fw_version_of_the_framework fw_0123456789abcdef01234567`]
  ])("are not in: %s", (text) => assert.deepStrictEqual(valuesIn({ detectors: { secret: true } }, text), []))

  const line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
  it.each([
    ["in lines", `-----BEGIN PRIVATE KEY-----\n${line}\n${line}\nabc=\n-----END PRIVATE KEY-----`],
    ["in one line", `-----BEGIN EC PRIVATE KEY-----${line}-----END EC PRIVATE KEY-----`],
    ["in JSON", `-----BEGIN PRIVATE KEY-----\\n${line}\\n${line}\\nabc=\\n-----END PRIVATE KEY-----`],
    [
      "with headers",
      `-----BEGIN RSA PRIVATE KEY-----\r\nProc-Type: 4,ENCRYPTED\r\nDEK-Info: AES-128-CBC,0123456789ABCDEF\r\n\r\n${line}\r\nab==\r\n-----END RSA PRIVATE KEY-----`
    ],
    ["of PGP", `-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n${line}\nabcd\n=ab12\n-----END PGP PRIVATE KEY BLOCK-----`],
    ["whose end is missing", `-----BEGIN PRIVATE KEY-----\n${line}\n${line}`]
  ])("are private keys %s", (_, key) =>
    assert.deepStrictEqual(valuesIn({ detectors: { secret: true } }, `a ${key} "b"`), [`SECRET ${key}`])
  )

  const pem = [
    "-----BEGIN RSA PRIVATE KEY-----",
    ...Array<string>(12).fill(line),
    "ab==",
    "-----END RSA PRIVATE KEY-----"
  ]
  it.each<[string, string]>([
    ["quoted", pem.map((line) => `> ${line}`).join("\n")],
    ["in a comment", pem.map((line) => `    # ${line}`).join("\n")],
    ["that a patch removes", pem.map((line) => `-${line}`).join("\n")],
    ["that a patch adds", pem.map((line) => `+${line}`).join("\n")],
    ["with line numbers", pem.map((line, index) => `${index + 1} | ${line}`).join("\n")],
    ["with line numbers and colons", pem.map((line, index) => `${index + 1}: ${line}`).join("\n")],
    ["in a program", pem.map((line) => `  "${line}\\n" +`).join("\n")],
    ["in HTML", pem.join("<br>\n")],
    ["in a table", pem.map((line, index) => `| ${index} | ${line} |`).join("\n")],
    ["in a table of HTML", pem.map((line) => `<tr><td>${line}</td></tr>`).join("\n")],
    ["in a list of JSON", JSON.stringify(pem)]
  ])("are private keys %s", (_, text) => {
    const [found, ...more] = valuesIn({ detectors: { secret: true } }, `a ${text} b`)
    assert.deepStrictEqual(more, [])
    assert.match(found ?? "", /^SECRET -----BEGIN RSA PRIVATE KEY-----[\s\S]*-----END RSA PRIVATE KEY-----$/)
  })

  it.each([16_384, 26_053, 100_000])("are whole, in several parts, if they have %d characters", (length) => {
    const word = line.repeat(length / line.length + 1).slice(0, length)
    const texts = [
      `-----BEGIN PRIVATE KEY-----\n${(word.match(/.{1,64}/g) ?? []).join("\n")}\n-----END PRIVATE KEY-----`,
      `-----BEGIN PRIVATE KEY-----${word}-----END PRIVATE KEY-----`,
      `eyJhbGciOiJIUzI1NiJ9.eyJ${word}.${line}`
    ]
    for (const text of texts) {
      const left = scan(Result.getOrThrow(DetectorSet.of(allDetectors)), "plain", `a ${text} then jane`).flatMap(
        (segment) => (segment._tag === "Text" ? [segment.raw.trim()] : [])
      )
      assert.deepStrictEqual(
        left.filter((text) => text !== ""),
        ["a", "then jane"]
      )
    }
  })

  it.each([
    "-----BEGIN PRIVATE KEY----- and then has lines of base64. Its hash is 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "A private key begins with -----BEGIN PRIVATE KEY----- and then has lines of base64.",
    "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
    "risk-averse-people-like-2-know task-123456789012345678901234 AKIA hf_hub_download sk-learn-estimators-and-others"
  ])("are not in: %s", (text) => assert.deepStrictEqual(valuesIn({ detectors: { secret: true } }, text), []))
})

/** `GUARDED_IDS=10000` looks at so many samples of each shape. */
const idRuns = Number(process.env["GUARDED_IDS"] ?? 500)

describe("ids and encodings", () => {
  it("have no values of any detector in them, alone and in prose, URLs and JSON", () => {
    fc.assert(
      fc.property(fc.tuple(...idShapes), (list) => {
        const texts = [
          ...list,
          `see ${list.join(", ")}.`,
          `(${list.join(") (")})`,
          ...list.map((id) => `https://api.example.com/v1/${id}?after=${id}&x=1#${id}`),
          JSON.stringify({ ids: list, nested: JSON.stringify(list) })
        ]
        for (const text of texts) assert.deepStrictEqual(valuesIn(idDetectors, text), [], text)
      }),
      { numRuns: idRuns }
    )
  })

  it.each([
    "react@18.2.0 and react@18.2.0-beta.1",
    "2026-11-24T10:00:00.123456+0000 2026-11-24T10:00:00Z 20261124100000 2026-11-24-10-00-00",
    "1764000000 1764000000123 1764000000.123 0.1234567890 3.14159265358979 192.168.100.200",
    "12345678-1234-1234-1234-123456789012 abcd-1234567890 1234567890-abcd"
  ])("%s", (text) => assert.deepStrictEqual(valuesIn({}, text), []))
})

describe("a configuration", () => {
  const mistake = (config: Readonly<Record<string, unknown>>) => Result.getFailure(DetectorSet.of(config))

  it("is read once for each object", () => {
    const config = { detectors: { phone: false } }
    assert.strictEqual(DetectorSet.of(config), DetectorSet.of(config))
    assert.deepStrictEqual(valuesIn(config, "555-123-4567 a@b.co"), ["EMAIL a@b.co"])
    assert.deepStrictEqual(valuesIn({ detectors: { email: { enabled: false }, ssn: {} } }, "a@b.co 123-45-6789"), [
      "SSN 123-45-6789"
    ])
  })

  it.each<[Readonly<Record<string, unknown>>, RegExp]>([
    [{ detectors: [] }, /^detectors must be an object/],
    [{ detectors: { emial: true } }, /^detectors\.emial is unknown; the detectors are email, /],
    [{ detectors: { email: 1 } }, /^detectors\.email must be /],
    [{ detectors: { email: { on: true } } }, /^detectors\.email must be /],
    [{ custom_patterns: {} }, /^custom_patterns must be a list/],
    [
      { custom_patterns: Array.from({ length: 21 }, (_, index) => ({ name: `A${index}`, pattern: "a" })) },
      /at most 20/
    ],
    [{ custom_patterns: ["a"] }, /^custom_patterns\[0\] must be an object/],
    [{ custom_patterns: [{ name: "a", pattern: "a" }] }, /^custom_patterns\[0\]\.name must be/],
    [{ custom_patterns: [{ name: "EMAIL", pattern: "a" }] }, /^custom_patterns\[0\]\.name "EMAIL" is taken/],
    [{ custom_patterns: [{ name: "A" }] }, /^custom_patterns\[0\]\.pattern must be a text/],
    [
      { custom_patterns: [{ name: "A", pattern: "(a" }] },
      /^custom_patterns\[0\]\.pattern is not a pattern of RE2: .*missing/
    ],
    [
      { custom_patterns: [{ name: "A", pattern: "a*" }] },
      /^custom_patterns\[0\]\.pattern must not match the empty text/
    ],
    [{ custom_patterns: [{ name: "A", pattern: "(?:a?b){1000}" }] }, /^custom_patterns\[0\]\.pattern is too large/],
    [{ custom_patterns: [{ name: "A", pattern: "a", max_length: 257 }] }, /^custom_patterns\[0\]\.max_length must be/],
    [{ custom_patterns: [{ name: "A", pattern: "a", max: 2 }] }, /^custom_patterns\[0\]\.max is unknown/]
  ])("is refused with a sentence about the field: %j", (config, sentence) => {
    assert.match(DetectorSet.mistakeIn(config) ?? "", sentence)
    const failure = mistake(config)
    assert.match(failure._tag === "Some" ? failure.value : "", sentence)
  })
})

describe("a new custom pattern", () => {
  const mistake = (pattern: string, max_length = 64) =>
    DetectorSet.mistakeIn({ custom_patterns: [{ name: "A", pattern, max_length }] })

  it.each([
    ["EMP–[0-9]{5}", /^custom_patterns\[0\]\.pattern has "–", which texts have as "-" /],
    ["ＥＭＰ", /has "Ｅ", which texts have as "E"/],
    ["[٠-٩]{3}", /has "٠", which texts have as "0"/],
    ["a\\x{2013}b", /which texts have as "-"/],
    ["a\\xa0b", /which texts have as " "/],
    ["a\u200bb", /has an invisible character/]
  ])("has no characters that searched texts do not have: %s", (pattern, sentence) => {
    assert.match(mistake(pattern) ?? "", sentence)
    assert.isTrue(Result.isSuccess(DetectorSet.of({ custom_patterns: [{ name: "A", pattern }] })))
  })

  it("takes no longer than its length allows", () => {
    const slow = "(?i)(?:[a-z ]{1,100}[0-9]){1,4}q"
    assert.match(
      mistake(slow, 256) ?? "",
      /pattern takes too long with max_length 256: lower max_length to 19, or repeat/
    )
    assert.isUndefined(mistake(slow, 19))
  })

  it.each(["EMP-[0-9]{5}", "é+", "\\\\x41", "[^\\x00-\\x7f]", "(?i)project [a-z]{3,20}", "[A-Z]{2}\\d{6}"])(
    "may be: %s",
    (pattern) => assert.isUndefined(mistake(pattern))
  )
})

describe("custom patterns", () => {
  const employee = { custom_patterns: [{ name: "EMPLOYEE", pattern: "\\bE\\d{4,6}\\b" }], detectors: {} }
  it("find what they match, also with escapes and invisible characters", () => {
    assert.deepStrictEqual(valuesIn(employee, "E1234, xE1234, E\u200b12345 and \\u00451234"), [
      "EMPLOYEE E1234",
      "EMPLOYEE E\u200b12345",
      "EMPLOYEE \\u00451234"
    ])
  })

  it("find no more than their length, the last part of a longer run", () => {
    const digits = {
      custom_patterns: [{ name: "DIGITS", pattern: "\\d+", max_length: 20 }],
      detectors: { phone: false }
    }
    assert.deepStrictEqual(valuesIn(digits, `${"1".repeat(10)}${"2".repeat(20)} 5`), [
      `DIGITS ${"2".repeat(20)}`,
      "DIGITS 5"
    ])
  })

  it("win over a detector that finds the same value", () => {
    const phone = { custom_patterns: [{ name: "DESK", pattern: "555-\\d{3}-\\d{4}" }] }
    assert.deepStrictEqual(valuesIn(phone, "555-123-4567"), ["DESK 555-123-4567"])
  })
})
