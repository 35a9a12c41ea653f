import { createRoute } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { laterPage } from "../../app/fallbacks/laterPage.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/configuration",
  validateSearch: textSearch("tab", "section", "keys"),
  component: laterPage(() => import("./ConfigurationPage.tsx"))
})

export const configurationRoutes = [list] as const
