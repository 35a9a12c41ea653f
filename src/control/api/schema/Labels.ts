import { Schema } from "effect"

/** Texts by which people recognise and find a key or a project. */

const Description = Schema.String.check(
  Schema.isPattern(/^[^\p{Cc}]{1,1000}$/u, { expected: "1 to 1000 characters, and no control characters" })
)

const OwnerEmail = Schema.String.check(
  Schema.isMaxLength(254),
  Schema.isPattern(/^[^\s\p{Cc}@]{1,64}@[^\s\p{Cc}@]{1,253}$/u, { expected: "an e-mail address" })
)

export const maxTags = 20

export const Tag = Schema.String.check(
  Schema.isPattern(/^[^\p{Cc}]{1,64}$/u, { expected: "1 to 64 characters, and no control characters" })
)

const Tags = Schema.Array(Tag).check(Schema.isMaxLength(maxTags), Schema.isUnique())

export const labels = {
  description: Schema.NullOr(Description),
  owner_email: Schema.NullOr(OwnerEmail),
  tags: Tags
}

/** `null` clears a label. `tags` replaces the whole list. */
export const labelInputs = {
  description: Schema.optionalKey(Schema.NullOr(Description)),
  owner_email: Schema.optionalKey(Schema.NullOr(OwnerEmail)),
  tags: Schema.optionalKey(Schema.NullOr(Tags))
}

/** Every word of the search must begin a word of the texts. A whole key must not get into logs with the URL. */
export const SearchText = Schema.String.check(
  Schema.isPattern(/^(?!.*rk_live_.{9})[^\p{Cc}]{1,200}$/u, {
    expected:
      "1 to 200 characters without control characters, and no whole key (search for its first 16 characters instead)"
  })
)
