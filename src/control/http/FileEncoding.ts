/** The bytes of a file in each encoding that it was stored in. */
export interface EncodedFile {
  readonly identity: Uint8Array
  readonly gzip?: Uint8Array
  readonly br?: Uint8Array
}

/** Returns the smallest form that the client accepts. The weights between encodings are ignored. */
export const encodingOf = (
  file: EncodedFile,
  accepted: string
): readonly [encoding: string | undefined, bytes: Uint8Array] => {
  const named = new Map(
    accepted
      .toLowerCase()
      .split(",")
      .map((item) => item.replaceAll(/\s/g, ""))
      .map((item) => [item.split(";", 1)[0], !/;q=0(?:\.0{0,3})?$/.test(item)])
  )
  const accepts = (encoding: string) => named.get(encoding) ?? named.get("*") ?? false
  if (file.br !== undefined && accepts("br")) return ["br", file.br]
  if (file.gzip !== undefined && accepts("gzip")) return ["gzip", file.gzip]
  return [undefined, file.identity]
}
