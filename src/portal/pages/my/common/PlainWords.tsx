import { Link } from "@tanstack/react-router"
import { Fragment } from "react"

/** The API names its paths in sentences, as most who read them have a program. Here the same are pages. */
const pages = {
  "GET me/limits": { to: "/my", label: "your limits" },
  "GET me/models": { to: "/my/models", label: "your models" },
  "GET me/guardrails": { to: "/my/guardrails", label: "your guardrails" },
  "GET me": { to: "/my/key", label: "your key" }
} as const

type Path = keyof typeof pages
const paths = /(GET me(?:\/[a-z]+)?)/
const isPath = (text: string): text is Path => Object.hasOwn(pages, text)

/** A sentence of the API with links in place of its paths. */
export const PlainWords = ({ text }: { readonly text: string }) => {
  let place = 0
  return (
    <>
      {text
        .replace("one of the models of GET", "one of GET")
        .replace("guardrails of GET", "GET")
        .split(paths)
        .map((piece) => {
          place += 1
          if (!isPath(piece)) return <Fragment key={place}>{piece}</Fragment>
          const { label, to } = pages[piece]
          return (
            <Link key={place} to={to}>
              {label}
            </Link>
          )
        })}
    </>
  )
}
