import { hyphen, isAlphanumeric, underscore } from "./Characters.ts"
import { type Detector, type Matcher, none, RunEnd, wait } from "./Detector.ts"
import { isFirstOfNamed, matchNamedSecret } from "./NamedSecret.ts"
import type { NormalText } from "./NormalText.ts"
import { stringOf } from "./Numbers.ts"
import { maxPrivateKey, PrivateKeyMatcher } from "./PrivateKey.ts"
import { type SecretShape, shapesByFirst } from "./SecretShapes.ts"

export const secret: Detector = {
  kind: "SECRET",
  maxLength: maxPrivateKey,
  canStart: (code) => isFirstOfNamed(code) || code === hyphen,
  matcher: (text) => new SecretMatcher(text)
}

class SecretMatcher implements Matcher {
  readonly #text: NormalText
  readonly #privateKey: PrivateKeyMatcher
  /** Most texts begin no secret, so that these are made when they are needed. */
  readonly #runEnds = new Map<SecretShape, RunEnd>()

  constructor(text: NormalText) {
    this.#text = text
    this.#privateKey = new PrivateKeyMatcher(text)
  }

  match(start: number): number {
    const text = this.#text
    const code = text.code(start)
    if (code === hyphen) return this.#privateKey.match(start)
    const before = text.code(start - 1)
    if (isAlphanumeric(before) || before === underscore) return none
    const named = matchNamedSecret(text, start)
    if (named !== none) return named
    for (const shape of shapesByFirst.get(code) ?? []) {
      const end = this.#matchShape(start, shape)
      if (end !== none) return end
    }
    return none
  }

  #matchShape(start: number, shape: SecretShape): number {
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
    const end = Math.min(this.#runEndOf(shape).from(from), windowEnd)
    if (end - from > max) return none
    if (end === windowEnd && isOpen) return wait
    const next = text.code(end)
    if (end - from < min || (end < windowEnd && (isAlphanumeric(next) || next === underscore))) return none
    if (pattern === undefined) return end
    const [found] = pattern.exec(stringOf(text, start, end)) ?? []
    return found === undefined ? none : start + found.length
  }

  #runEndOf(shape: SecretShape): RunEnd {
    const known = this.#runEnds.get(shape)
    if (known !== undefined) return known
    const created = new RunEnd(this.#text, shape.isPart)
    this.#runEnds.set(shape, created)
    return created
  }
}
