import { hyphen, isAlphanumeric, plus, underscore } from "./Characters.ts"
import { type Detector, type Matcher, none, RunEnd, wait } from "./Detector.ts"
import type { NormalText } from "./NormalText.ts"
import { stringOf } from "./Numbers.ts"
import { maxPrivateKey, PrivateKeyMatcher } from "./PrivateKey.ts"
import { isBetweenNameAndValue, isFirstOfShape, isInName, type SecretShape, secretShapes } from "./SecretShapes.ts"

export const secret: Detector = {
  kind: "SECRET",
  maxLength: maxPrivateKey,
  canStart: (code) => isInAwsSecret(code) || code === hyphen || isFirstOfShape(code),
  matcher: (text) => new SecretMatcher(text)
}

class SecretMatcher implements Matcher {
  readonly #text: NormalText
  readonly #privateKey: PrivateKeyMatcher
  readonly #shapes: ReadonlyArray<{ readonly shape: SecretShape; readonly runEnd: RunEnd }>

  constructor(text: NormalText) {
    this.#text = text
    this.#privateKey = new PrivateKeyMatcher(text)
    this.#shapes = secretShapes.map((shape) => ({ shape, runEnd: new RunEnd(text, shape.isPart) }))
  }

  match(start: number): number {
    const text = this.#text
    const code = text.code(start)
    if (code === hyphen) return this.#privateKey.match(start)
    const before = text.code(start - 1)
    if (isAlphanumeric(before) || before === underscore) return none
    const aws = matchAwsSecret(text, start)
    if (aws !== none || !isFirstOfShape(code)) return aws
    for (const { runEnd, shape } of this.#shapes) {
      if (shape.prefix.charCodeAt(0) !== code) continue
      const end = this.#matchShape(start, shape, runEnd)
      if (end !== none) return end
    }
    return none
  }

  #matchShape(start: number, shape: SecretShape, runEnd: RunEnd): number {
    const { max, min, pattern, prefix } = shape
    const text = this.#text
    if (shape.isWholeRun && shape.isPart(text.code(start - 1))) return none
    const windowEnd = text.windowEnd(start, maxPrivateKey)
    const isOpen = text.isOpen(start, maxPrivateKey)
    for (let place = 0; place < prefix.length; place++) {
      if (start + place >= windowEnd) return isOpen ? wait : none
      if (text.code(start + place) !== prefix.charCodeAt(place)) return none
    }
    const from = start + prefix.length
    const end = Math.min(runEnd.from(from), windowEnd)
    if (end - from > max) return none
    if (end === windowEnd && isOpen) return wait
    const next = text.code(end)
    if (end - from < min || (end < windowEnd && (isAlphanumeric(next) || next === underscore))) return none
    if (pattern === undefined) return end
    const [found] = pattern.exec(stringOf(text, start, end)) ?? []
    return found === undefined ? none : start + found.length
  }
}

const isInAwsSecret = (code: number): boolean => isAlphanumeric(code) || code === plus || code === 0x2f

const awsSecretLength = 40

/** An AWS secret access key has no shape of its own, so its name has to stand before it. */
const matchAwsSecret = (text: NormalText, start: number): number => {
  if (!isBetweenNameAndValue(text.code(start - 1)) || !isAfterAwsName(text, start)) return none
  const windowEnd = text.windowEnd(start, 2 * awsSecretLength)
  let end = start
  while (end < windowEnd && end - start <= awsSecretLength && isInAwsSecret(text.code(end))) end++
  if (end === windowEnd && end - start <= awsSecretLength && text.isOpen(start, 2 * awsSecretLength)) return wait
  return end - start === awsSecretLength ? end : none
}

const maxSeparators = 8
const maxName = 32

const isAfterAwsName = (text: NormalText, start: number): boolean => {
  let end = start
  while (end > start - maxSeparators && isBetweenNameAndValue(text.code(end - 1))) end--
  let first = end
  while (first > end - maxName && isInName(text.code(first - 1))) first--
  return (
    first < end &&
    /(?:secretaccesskey|awssecretkey)$/.test(stringOf(text, first, end).toLowerCase().replaceAll(/[_-]/g, ""))
  )
}
