import { matchClientSecret } from "./ClientSecret.ts"
import { type Detector, type Matcher, none, RunEnd, wait } from "./Detector.ts"
import { hyphen, isAlphanumeric, underscore } from "./lexing/Characters.ts"
import type { NormalText } from "./lexing/NormalText.ts"
import { isFirstOfNamed, matchNamedSecret } from "./NamedSecret.ts"
import { isAfterEscape, stringOf } from "./Numbers.ts"
import { PrivateKeyMatcher } from "./PrivateKey.ts"
import { type SecretShape, shapesByFirst } from "./SecretShapes.ts"
import { TokenMatcher } from "./Token.ts"

export const secret: Detector = {
  kind: "SECRET",
  canStart: (code) => isFirstOfNamed(code) || code === hyphen,
  matcher: (text) => new SecretMatcher(text)
}

const letterE = 0x65
const maxUnderscores = 3

class SecretMatcher implements Matcher {
  readonly #text: NormalText
  readonly #privateKey: PrivateKeyMatcher
  readonly #token: TokenMatcher
  /** Most texts begin no secret, so that these are made when they are needed. */
  readonly #runEnds = new Map<SecretShape, RunEnd>()

  constructor(text: NormalText) {
    this.#text = text
    this.#privateKey = new PrivateKeyMatcher(text)
    this.#token = new TokenMatcher(text)
  }

  match(start: number): number {
    const code = this.#text.code(start)
    if (this.#token.continuesAt(start)) return this.#token.continue(start)
    if (code === hyphen || this.#privateKey.mayContinueAt(start)) {
      const end = this.#privateKey.match(start)
      if (end !== none || code === hyphen) return end
    }
    if (this.#isInWord(start)) return none
    const named = matchNamedSecret(this.#text, start)
    if (named !== none) return named
    const client = matchClientSecret(this.#text, start)
    if (client !== none) return client
    if (code === letterE) return this.#token.match(start)
    for (const shape of shapesByFirst.get(code) ?? []) {
      const end = this.#matchShape(start, shape)
      if (end !== none) return end
    }
    return none
  }

  #isInWord(start: number): boolean {
    if (isAfterEscape(this.#text, start)) return false
    let index = start - 1
    while (index >= start - maxUnderscores && this.#text.code(index) === underscore) index--
    return isWordCharacter(this.#text.code(index))
  }

  /** A `_` and a name may follow a secret. */
  #matchShape(start: number, shape: SecretShape): number {
    const { max, min, pattern, prefix } = shape
    const text = this.#text
    const windowEnd = text.windowEnd(start)
    const isOpen = text.isOpen(start)
    for (let place = 0; place < prefix.length; place++) {
      if (start + place >= windowEnd) return isOpen ? wait : none
      if (text.code(start + place) !== prefix.charCodeAt(place)) return none
    }
    const from = start + prefix.length
    const runEnd = Math.min(this.#runEndOf(shape).from(from), windowEnd)
    const isNamed = min === max && runEnd - from > max && text.code(from + max) === underscore
    const end = isNamed ? from + max : runEnd
    if (end - from > max) return none
    if (end === windowEnd && isOpen) return wait
    if (end - from < min || (end < windowEnd && isAlphanumeric(text.code(end)))) return none
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

const isWordCharacter = (code: number): boolean => isAlphanumeric(code) || code === underscore
