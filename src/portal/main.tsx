import { StrictMode } from "react"
import { createRoot } from "react-dom/client"
import { readSession } from "./api/session.ts"
import { Portal } from "./Portal.tsx"
import "./theme/tokens.css"

void readSession()

const root = document.getElementById("root")
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <Portal />
    </StrictMode>
  )
}
