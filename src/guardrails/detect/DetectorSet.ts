import { Result } from "effect"
import { CustomPattern } from "./CustomPattern.ts"
import type { Detector } from "./Detector.ts"
import { email } from "./Email.ts"
import { internationalBankAccount } from "./InternationalBankAccount.ts"
import { ipAddress } from "./IpAddress.ts"
import { maxLexeme } from "./lexing/Lexer.ts"
import { maxValue } from "./lexing/NormalText.ts"
import { paymentCard } from "./PaymentCard.ts"
import { phoneNumber } from "./PhoneNumber.ts"
import { secret } from "./Secret.ts"
import { socialSecurityNumber } from "./SocialSecurityNumber.ts"

/** A guardrail's configuration. This module reads `detectors` and `custom_patterns`. */
export type Config = Readonly<Record<string, unknown>>

/** Of values of the same length at the same place, the first of these counts. */
const builtIn: ReadonlyArray<{ readonly name: string; readonly detector: Detector; readonly isDefault: boolean }> = [
  { name: "email", detector: email, isDefault: true },
  { name: "ssn", detector: socialSecurityNumber, isDefault: true },
  { name: "payment_card", detector: paymentCard, isDefault: false },
  // a token of GitLab that begins with GR can happen to have the checksum of a Greek account
  { name: "secret", detector: secret, isDefault: false },
  { name: "iban", detector: internationalBankAccount, isDefault: false },
  { name: "ip_address", detector: ipAddress, isDefault: false },
  { name: "phone", detector: phoneNumber, isDefault: true }
]

const maxPatterns = 20

/** The detectors of one configuration. */
export class DetectorSet {
  /** In the order in which they take precedence. */
  readonly detectors: ReadonlyArray<Detector>
  /** The names in placeholders. */
  readonly kinds: ReadonlyArray<string>
  /** A scanner holds at most so many characters. */
  readonly maxHeld = maxValue + maxLexeme
  readonly #candidates: ReadonlyArray<ReadonlyArray<number>>
  readonly #otherCandidates = new Map<number, ReadonlyArray<number>>()

  private constructor(detectors: ReadonlyArray<Detector>) {
    this.detectors = detectors
    this.kinds = [...new Set(detectors.map(({ kind }) => kind))]
    this.#candidates = Array.from({ length: 0x80 }, (_, code) => this.#candidatesOf(code))
  }

  /** Reads a configuration. The failure is a sentence that names the wrong field. */
  static of(config: Config): Result.Result<DetectorSet, string> {
    const known = sets.get(config)
    if (known !== undefined) return known
    const set = Result.gen(function* () {
      const enabled = yield* enabledDetectors(config["detectors"])
      const patterns = yield* customPatterns(config["custom_patterns"])
      return new DetectorSet([...patterns, ...enabled])
    })
    sets.set(config, set)
    return set
  }

  /**
   * Returns a sentence about the first mistake in a configuration that is to be saved. It is stricter than `of`, which
   * also reads configurations that an older version has saved.
   */
  static mistakeIn(config: Config): string | undefined {
    const set = DetectorSet.of(config)
    if (Result.isFailure(set)) return set.failure
    const patterns = set.success.detectors.filter((detector) => detector instanceof CustomPattern)
    for (const [index, pattern] of patterns.entries()) {
      const mistake = pattern.mistake()
      if (mistake !== undefined) return `custom_patterns[${index}].${mistake}`
    }
    return undefined
  }

  /** Returns the indexes of the detectors whose values may begin with this character. */
  candidates(code: number): ReadonlyArray<number> {
    const candidates = this.#candidates[code] ?? this.#otherCandidates.get(code)
    if (candidates !== undefined) return candidates
    const computed = this.#candidatesOf(code)
    this.#otherCandidates.set(code, computed)
    return computed
  }

  #candidatesOf(code: number): ReadonlyArray<number> {
    return this.detectors.flatMap(({ canStart }, index) => (canStart === undefined || canStart(code) ? [index] : []))
  }
}

const sets = new WeakMap<Config, Result.Result<DetectorSet, string>>()

const enabledDetectors = (value: unknown): Result.Result<ReadonlyArray<Detector>, string> => {
  if (value === undefined) return Result.succeed(builtIn.filter(({ isDefault }) => isDefault).map(detectorOf))
  if (!isRecord(value)) return Result.fail("detectors must be an object of detector names and booleans.")
  for (const [name, setting] of Object.entries(value)) {
    if (!builtIn.some((entry) => entry.name === name)) {
      return Result.fail(
        `detectors.${name.slice(0, 64)} is unknown; the detectors are ${builtIn.map(({ name }) => name).join(", ")}.`
      )
    }
    if (isEnabled(setting) === undefined) {
      return Result.fail(`detectors.${name} must be true, false or {"enabled": true or false}.`)
    }
  }
  return Result.succeed(builtIn.filter(({ isDefault, name }) => isEnabled(value[name]) ?? isDefault).map(detectorOf))
}

const detectorOf = ({ detector }: { readonly detector: Detector }): Detector => detector

const isEnabled = (setting: unknown): boolean | undefined => {
  if (typeof setting === "boolean") return setting
  if (!isRecord(setting) || Object.keys(setting).some((key) => key !== "enabled")) return undefined
  const { enabled = true } = setting
  return typeof enabled === "boolean" ? enabled : undefined
}

const customPatterns = (value: unknown): Result.Result<ReadonlyArray<Detector>, string> => {
  if (value === undefined) return Result.succeed([])
  if (!Array.isArray(value)) return Result.fail("custom_patterns must be a list of objects.")
  if (value.length > maxPatterns) {
    return Result.fail(`custom_patterns has ${value.length} patterns; at most ${maxPatterns} are allowed.`)
  }
  return Result.gen(function* () {
    const patterns: Array<Detector> = []
    for (const [index, item] of value.entries()) {
      const field = `custom_patterns[${index}]`
      const pattern = yield* CustomPattern.of(field, item)
      if (
        patterns.some(({ kind }) => kind === pattern.kind) ||
        builtIn.some(({ detector }) => detector.kind === pattern.kind)
      ) {
        return yield* Result.fail(`${field}.name "${pattern.kind}" is taken; choose another name.`)
      }
      patterns.push(pattern)
    }
    return patterns
  })
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)
