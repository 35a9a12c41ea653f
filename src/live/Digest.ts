import { Schema } from "effect"

/** One occurrence, as listeners see it. */
export type Detail = Readonly<Record<string, string | number | boolean | null>>

/** How often something happened, and the latest occurrences, oldest first. */
export interface Occurrences {
  readonly count: number
  readonly latest: ReadonlyArray<Detail>
}

/** A digest has the occurrences of a topic within some time, by kind. `count` minus the length of `latest` were left out. */
export type Digest = Readonly<Record<string, Occurrences>>

export const empty: Digest = {}

/**
 * Adds what happened later. Nothing is lost of the counts, and at most `most` occurrences of each kind are kept. The
 * result does not depend on how digests are grouped.
 */
export const merge = (earlier: Digest, later: Digest, most: number): Digest => {
  const merged: Record<string, Occurrences> = { ...earlier }
  for (const [kind, { count, latest }] of Object.entries(later)) {
    const before = earlier[kind]
    merged[kind] =
      before === undefined
        ? { count, latest: latest.slice(-most) }
        : { count: before.count + count, latest: [...before.latest, ...latest].slice(-most) }
  }
  return merged
}

const DigestJson = Schema.fromJsonString(
  Schema.Record(
    Schema.String,
    Schema.Struct({
      count: Schema.Int,
      latest: Schema.Array(
        Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Finite, Schema.Boolean, Schema.Null]))
      )
    })
  )
)

export const encode = (digest: Digest): string => JSON.stringify(digest)

/** `None` for a batch of another version that this version cannot read. */
export const decode = Schema.decodeUnknownOption(DigestJson)
