import { Option } from "effect"

const visible = /^[\x21-\x5b\x5d-\x7e]*$/
const below = /^\/admin-ui(?:\/|$)/
/** A server or proxy that decodes the path again would see another one. */
const hidden = /%(?:[01][0-9a-f]|2[5f]|5c|7f)/i
/** These would sign the browser in again, and again. */
const ownPaths = /^\/admin-ui\/session(?:\/|$)/

/** Returns the local path below `/admin-ui`, as browsers understand it, or `none` if the text is anything else. */
export const parse = (text: string): Option.Option<string> => {
  if (!visible.test(text) || !below.test(text)) return Option.none()
  const url = URL.parse(text, base)
  if (url === null || url.origin !== base) return Option.none()
  const { hash, pathname, search } = url
  const isLocal = below.test(pathname) && !hidden.test(pathname) && !ownPaths.test(pathname)
  return isLocal ? Option.some(pathname + search + hash) : Option.none()
}

const base = "http://control.invalid"
