import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import fc from "fast-check"
import { DetectorSet } from "../../../src/guardrails/detect/DetectorSet.ts"
import { scan } from "../../../src/guardrails/detect/Scanner.ts"
import { allDetectors, secrets } from "./Texts.ts"
import { valuesIn } from "./Values.ts"

describe("secrets", () => {
  it("of every published shape are found whole, in prose, quotes and URLs", () => {
    fc.assert(
      fc.property(secrets, fc.constantFrom(" ", '"', "'", "\n", "=", ":", "("), (secret, before) => {
        assert.deepStrictEqual(valuesIn(allDetectors, `key${before}${secret}" is mine`), [`SECRET ${secret}`])
      }),
      { numRuns: 2000 }
    )
  })

  it("are found before accounts whose checksum they happen to have", () => {
    const token = "GR1348941cP-sXnBaEjD6RFanKM-N"
    assert.deepStrictEqual(valuesIn(allDetectors, token), [`SECRET ${token}`])
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
    [
      "a token with spaces in its header",
      `x eyAiYWxnIjogIkhTMjU2IiB9.ewogICJzdWIiOiAiMSJ9.c2lnbmF0dXJlX2hlcmU y`,
      "eyAiYWxnIjogIkhTMjU2IiB9.ewogICJzdWIiOiAiMSJ9.c2lnbmF0dXJlX2hlcmU"
    ],
    [
      "a token without a signature",
      "x eyJhbGciOiJub25lIn0.eyJzdWIiOiIxMjM0NSJ9. y",
      "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxMjM0NSJ9."
    ],
    ["a client secret", `x ab~8Q~${"a1B2".repeat(8)}_c.`, `ab~8Q~${"a1B2".repeat(8)}_c`],
    ["a client secret after punctuation", `=~.c8Q~${"a1B2".repeat(8)}_d`, `c8Q~${"a1B2".repeat(8)}_d`],
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
    ["a key of hexadecimal digits", `x sk-${"a1b2".repeat(8)} sk-or-v1`, `sk-${"a1b2".repeat(8)}`],
    ["a key in Markdown", `_ghp_${"a1B2".repeat(9)}_`, `ghp_${"a1B2".repeat(9)}`],
    ["a key before a name", `ghp_${"a1B2".repeat(9)}_backup`, `ghp_${"a1B2".repeat(9)}`],
    ["a key of AWS before a name", "AKIAIOSFODNN7EXAMPLE_prod", "AKIAIOSFODNN7EXAMPLE"],
    ["a key of Google before a name", `AIza${"a1B2_".repeat(7)}_x y`, `AIza${"a1B2_".repeat(7)}`],
    ["a key after a percent escape", `%3Dghp_${"a1B2".repeat(9)}`, `ghp_${"a1B2".repeat(9)}`]
  ])("are %s", (_, text, secret = text) =>
    assert.deepStrictEqual(valuesIn({ detectors: { secret: true } }, text), [`SECRET ${secret}`])
  )

  it.each([
    [
      "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9. ewok.ewoks.abcdefghijklmn abc8Q~a bedrock-api-key-example glimt-abstract-illustration-v"
    ],
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
    "risk-averse-people-like-2-know task-123456789012345678901234 AKIA hf_hub_download sk-learn-estimators-and-others",
    "sk-estimator-id-1234567 sk-toggleable__control-1234567890123 sk-cube-grid-1-2-3-4-5-6-7-8-9 sk-5d41402a-bc4b-2a76-b971-9d911017c592"
  ])("are not in: %s", (text) => assert.deepStrictEqual(valuesIn({ detectors: { secret: true } }, text), []))
})
