import { PageHeader } from "../../shared/page/PageHeader.tsx"

const ServicesPage = () => <PageHeader title="Services" />

export default ServicesPage
