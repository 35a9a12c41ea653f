import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { DetectorSet } from "../../../src/guardrails/detect/DetectorSet.ts"
import { Scanner, scan } from "../../../src/guardrails/detect/Scanner.ts"
import { excessiveGrowth } from "../../linear/Growth.ts"
import { allDetectors } from "./Texts.ts"

const all = Result.getOrThrow(DetectorSet.of(allDetectors))
const line = `${"Ab1/".repeat(16)}\n`

const shapes: ReadonlyArray<readonly [name: string, unit: string]> = [
  ["beginnings of private keys", "-----BEGIN"],
  ["headers of private keys", "-----BEGIN PRIVATE KEY-----\n"],
  ["private keys with short lines", "-----BEGIN PRIVATE KEY-----\na: b\n"],
  ["a private key without an end", `-----BEGIN PRIVATE KEY-----\n${line.repeat(1000)}`],
  ["private keys", `-----BEGIN PRIVATE KEY-----\n${line.repeat(8)}-----END PRIVATE KEY-----\n`],
  ["beginnings of tokens", "eyJ-"],
  ["tokens with dots", "eyJabcde."],
  ["runs of tokens", `${"eyJ-".repeat(2000)} `],
  ["other secrets", "sk-"],
  ["names of AWS keys", "aws_secret_access_key="],
  ["parts of tokens", "eyJabcdefgh."],
  ["a long token", `eyJhbGciOiJI.eyJ${"a".repeat(40_000)}`],
  ["private keys with line numbers", `-----BEGIN PRIVATE KEY-----\n${`1: ${line}`.repeat(1000)}`],
  ["names of keys with spaces", "secret access key | "],
  ["words that are joined", "SSN-987-65-4321_"],
  ["numbers with many dashes", "555-123-4567-"],
  ["colors", "\u001b[1;1;1m5"],
  ["percent escapes", "%20%3A5"],
  ["invisible characters in numbers", `9${"\u200b".repeat(50)}`],
  ["escaped backslashes", "\\\\\\"],
  ["escapes", "\\\\u0061"],
  ["beginnings of entities", "&#000"],
  ["invisible characters", "a\u200b"],
  ["halves of surrogate pairs", "\ud835"],
  ["domains with numbers", "a@b.c.1.1.1.1.1"],
  ["addresses without a label", "a@1."],
  ["addresses with colons", "1:"],
  ["groups of cards", "4111 "],
  ["groups of phone numbers", "+49 (0)30/1 "],
  ["numbers with lines of dots", "5...."],
  ["marks of client secrets", "a8Q~"],
  ["names in style sheets", "sk-a1-b2-"],
  ["entities that are numbers", "&#000000000000000000000000000000"],
  ["groups of accounts", "DE89 3704 "],
  ["patterns that nearly match", "ticket a"],
  ["matches at the end", "X"]
]

describe("the time of a scan grows with the text alone:", () => {
  it.each(shapes)("%s", (_, unit) => {
    const growth = excessiveGrowth(
      (length) => {
        const text = unit.repeat(Math.ceil(length / unit.length)).slice(0, length)
        return () => scan(all, "plain", text)
      },
      { longest: 65_536, cheapMs: 30 }
    )
    assert.isUndefined(growth)
  })

  it.each(shapes)("%s, character by character", (_, unit) => {
    const growth = excessiveGrowth(
      (length) => {
        const text = unit.repeat(Math.ceil(length / unit.length)).slice(0, length)
        return () => {
          const scanner = new Scanner(all, "json")
          for (let at = 0; at < length; at++) scanner.push(text.charAt(at))
          return scanner.flush()
        }
      },
      { longest: 65_536, cheapMs: 60 }
    )
    assert.isUndefined(growth)
  })
})
