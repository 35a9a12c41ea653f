import type { Drawn, DrawnEdge } from "./drawn.ts"
import { type Places, size } from "./layout.ts"

/** A rectangle of the drawing, in its own pixels. */
export interface Area {
  readonly left: number
  readonly top: number
  readonly right: number
  readonly bottom: number
}

/** The place of the drawing's origin on the screen, and how large the drawing is shown. */
export interface Viewport {
  readonly x: number
  readonly y: number
  readonly zoom: number
}

interface Screen {
  readonly width: number
  readonly height: number
}

export const areaOf = ({ x, y, zoom }: Viewport, { height, width }: Screen): Area => ({
  left: -x / zoom,
  top: -y / zoom,
  right: (width - x) / zoom,
  bottom: (height - y) / zoom
})

export const isWithin = (inner: Area, outer: Area): boolean =>
  inner.left >= outer.left && inner.right <= outer.right && inner.top >= outer.top && inner.bottom <= outer.bottom

/** The area with a margin, so that a short move shows nothing that is not drawn yet. */
export const widened = ({ bottom, left, right, top }: Area): Area => {
  const [horizontal, vertical] = [(right - left) / 3, (bottom - top) / 3]
  return { left: left - horizontal, top: top - vertical, right: right + horizontal, bottom: bottom + vertical }
}

const boundsOf = (places: Places): Area => {
  const bounds = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity }
  for (const { x, y } of places.values()) {
    bounds.left = Math.min(bounds.left, x)
    bounds.top = Math.min(bounds.top, y)
    bounds.right = Math.max(bounds.right, x + size.width)
    bounds.bottom = Math.max(bounds.bottom, y + size.height)
  }
  return bounds
}

/** Text of a smaller drawing cannot be read. */
const leastReadable = 0.6
const comfortable = 0.85
const padding = 24

/** Shows the whole drawing if it is readable then, and otherwise the chosen node, or the left upper end of the drawing. */
export const firstViewport = (places: Places, screen: Screen, chosen: string | undefined): Viewport => {
  if (places.size === 0) return { x: 0, y: 0, zoom: 1 }
  const { bottom, left, right, top } = boundsOf(places)
  const [wide, high] = [right - left, bottom - top]
  const fitting = Math.min((screen.width - 2 * padding) / wide, (screen.height - 2 * padding) / high, 1)
  if (fitting >= leastReadable) return centred((left + right) / 2, (top + bottom) / 2, fitting, screen)
  const place = chosen === undefined ? undefined : places.get(chosen)
  if (place !== undefined) return centred(place.x + size.width / 2, place.y + size.height / 2, comfortable, screen)
  const fits = high * comfortable + 2 * padding <= screen.height
  return {
    x: padding - left * comfortable,
    y: fits ? screen.height / 2 - ((top + bottom) / 2) * comfortable : padding - top * comfortable,
    zoom: comfortable
  }
}

const centred = (x: number, y: number, zoom: number, { height, width }: Screen): Viewport => ({
  x: width / 2 - x * zoom,
  y: height / 2 - y * zoom,
  zoom
})

/** A node with more edges keeps only those that stay within the area, because thousands of others would cover everything. */
const mostToOutside = 12

/** Returns the nodes and edges to draw while an area of a large graph is in view. */
export const partIn = (
  area: Area,
  places: Places,
  { edges, nodes }: { readonly nodes: ReadonlyArray<Drawn>; readonly edges: ReadonlyArray<DrawnEdge> }
): { readonly nodes: ReadonlyArray<Drawn>; readonly edges: ReadonlyArray<DrawnEdge> } => {
  const inside = new Set<string>()
  for (const [id, { x, y }] of places)
    if (x < area.right && y < area.bottom && x + size.width > area.left && y + size.height > area.top) inside.add(id)
  const touching = edges.filter(({ source, target }) => inside.has(source) || inside.has(target))
  const degree = new Map<string, number>()
  for (const { source, target } of touching)
    for (const id of [source, target]) degree.set(id, (degree.get(id) ?? 0) + 1)
  const isQuiet = (id: string) => !inside.has(id) || (degree.get(id) ?? 0) <= mostToOutside
  const drawn = touching.filter(
    ({ source, target }) => (inside.has(source) && inside.has(target)) || (isQuiet(source) && isQuiet(target))
  )
  const ends = new Set([...inside, ...drawn.flatMap(({ source, target }) => [source, target])])
  return { nodes: nodes.filter(({ id }) => ends.has(id)), edges: drawn }
}
