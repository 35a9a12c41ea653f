import { Schema, SchemaTransformation } from "effect"

/** `AllowAll` allows every value. `Allow` allows only the listed values. An empty list allows nothing. */
export type AllowList<A> = { readonly _tag: "AllowAll" } | { readonly _tag: "Allow"; readonly values: ReadonlyArray<A> }

export const allowAll: AllowList<never> = { _tag: "AllowAll" }
export const allow = <A>(values: ReadonlyArray<A>): AllowList<A> => ({ _tag: "Allow", values })

export const allows = <A>(list: AllowList<A>, value: A): boolean =>
  list._tag === "AllowAll" || list.values.includes(value)

export const intersection = <A>(a: AllowList<A>, b: AllowList<A>): AllowList<A> => {
  if (a._tag === "AllowAll") return b
  if (b._tag === "AllowAll") return a
  return allow(a.values.filter((value) => b.values.includes(value)))
}

/** The maximum number of items of a list. */
export const maxListed = 1000

/** In JSON the list is an array of at most `maxListed` items, or `null` for no restriction. */
export const allowListOf = <A extends string | number>(
  item: Schema.Codec<A, A>
): Schema.Codec<AllowList<A>, ReadonlyArray<A> | null> =>
  Schema.NullOr(Schema.Array(item).check(Schema.isMaxLength(maxListed))).pipe(
    Schema.decodeTo(
      Schema.Union([
        Schema.Struct({ _tag: Schema.Literal("AllowAll") }),
        Schema.Struct({ _tag: Schema.Literal("Allow"), values: Schema.Array(Schema.toType(item)) })
      ]),
      SchemaTransformation.transform<AllowList<A>, ReadonlyArray<A> | null>({
        decode: (value) => (value === null ? allowAll : allow(value)),
        encode: (list) => (list._tag === "AllowAll" ? null : list.values)
      })
    )
  )
